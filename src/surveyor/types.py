"""The types that environments, agents and runners share."""

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

if TYPE_CHECKING:
    Arrays = Array
    HostArrays = Any
else:
    Arrays = HostArrays = Array | np.ndarray  # NumPy's where an environment steps in Python

PRNG = Key[Array, ""]
Obs = Shaped[Array, "..."]
States = Int[Array, "*b"]  # observations that are numbers
Mask = Bool[Array, " n"]


Kind = TypeVar("Kind", bound=type)


def pytree(kind: Kind) -> Kind:
    """Make a dataclass a pytree; fields with the metadata `static` are no part of its arrays.

    Equinox modules take ten times as long to create, and their methods to look up, which tells
    where an environment steps in Python.
    """
    static = {field.name for field in dataclasses.fields(kind) if field.metadata.get("static")}
    names = [field.name for field in dataclasses.fields(kind)]
    data, meta = [n for n in names if n not in static], [n for n in names if n in static]

    def flatten(one: Any) -> Any:
        return [getattr(one, name) for name in data], tuple(getattr(one, name) for name in meta)

    def flatten_with_keys(one: Any) -> Any:
        children, aux = flatten(one)
        return list(zip(map(jax.tree_util.GetAttrKey, data), children, strict=True)), aux

    def unflatten(aux: Any, children: Any) -> Any:
        one = object.__new__(kind)  # JAX fills trees with all sorts of things
        vars(one).update(zip(data, children, strict=True))
        vars(one).update(zip(meta, aux, strict=True))
        return one

    jax.tree_util.register_pytree_with_keys(kind, flatten_with_keys, unflatten, flatten)
    return kind


class EnvSpec(eqx.Module):
    """Spaces and horizon of an environment."""

    num_states: int = eqx.field(static=True)
    """Size of a `Discrete` observation space, whose observations are numbers; 0 for all others."""
    num_actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True, default=0)
    """Largest number of steps in an episode; 0 if unknown."""
    shape: tuple[int, ...] = eqx.field(static=True, default=())
    """Shape of an observation, whose numbers have type `dtype`."""
    dtype: str = eqx.field(static=True, default="int32")
    stack: int = eqx.field(static=True, default=0)
    """Frames that an observation stacks along its first axis, the newest last, so that the replay
    can store each frame once; 0 where observations share nothing."""

    image: tuple[int, ...] = eqx.field(static=True, default=())
    """Shape of the image that a frame is, or that the first numbers of a vector are; see
    `picture`."""
    bounds: tuple[tuple[float, float], ...] = eqx.field(static=True, default=())
    """Smallest and largest value of each channel of the image and of each other number, infinite
    where they are unknown; () where observations need no scaling."""
    codes: tuple[int, ...] = eqx.field(static=True, default=())
    """Number of values of each channel of the image, where these are names of things, such as wall
    and door, not sizes; else ()."""
    masked: bool = eqx.field(static=True, default=False)
    """True if the environment says which actions are allowed."""

    @property
    def tabular(self) -> bool:
        """True if observations are the numbers of states."""
        return self.num_states > 0

    @property
    def frame(self) -> tuple[int, ...]:
        """Shape of one of the frames that an observation stacks, or of the observation."""
        return self.shape[1:] if self.stack else self.shape

    @property
    def picture(self) -> tuple[int, ...]:
        """Shape of the image in a frame, with an axis for channels if there are three; or ().

        Three axes are an image from 3 × 3 pixels on. Two are one if they hold bytes or are large;
        small boards of other numbers are as well read by an MLP.
        """
        if self.image or len(self.frame) < 2:
            return self.image
        if len(self.frame) == 3:
            return self.frame if sorted(self.frame)[1] >= 3 else ()
        small = 3 if self.dtype == "uint8" or self.stack else 20
        grey = len(self.frame) == 2 and min(self.frame) >= small and self.dtype != "bool"
        return self.frame if grey else ()


def stacked(spec: EnvSpec, frames: int) -> EnvSpec:
    """Return the spec of observations that stack this many frames."""
    return dataclasses.replace(spec, shape=(frames, *spec.shape), stack=frames, image=spec.picture)


def channel_axis(shape: tuple[int, ...]) -> int | None:
    """Return the axis of an image's channels; None if it has none."""
    if len(shape) != 3:
        return None
    first, second, third = shape
    return 0 if first != second and (second == third or first < third) else 2


@pytree
@dataclasses.dataclass(frozen=True)
class Transition:
    """One step of experience, or a batch of them along the first axis of every leaf.

    `next_obs` is the observation that followed, before any reset; only `terminated` stops a
    target from looking beyond it.
    """

    obs: Shaped[Arrays, "..."]
    action: Int[Arrays, "*batch"]
    reward: Float[Arrays, "*batch"]
    next_obs: Shaped[Arrays, "..."]
    terminated: Bool[Arrays, "*batch"]
    next_legal: Bool[Arrays, "*batch actions"] | None = dataclasses.field(
        default=None, kw_only=True
    )
    """True for each action that is allowed after the step; None where all always are."""


@pytree
@dataclasses.dataclass(frozen=True)
class Trail:
    """Steps 2, 3, … of transitions over several steps."""

    obs: Shaped[Arrays, "..."]
    action: Int[Arrays, "*batch steps"]
    discount: Float[Arrays, "*batch steps"]
    """γ, γ², …, and 0 after the end of the episode."""
    legal: Bool[Arrays, "*batch actions"] | None = None
    """True for each action that is allowed after the first step; None where all always are."""


@pytree
@dataclasses.dataclass(frozen=True)
class Batch(Transition):
    """Transitions drawn from the replay."""

    number: Int[Arrays, "*batch"]
    """Position of each transition in the whole run's sequence of transitions."""
    discount: Float[Arrays, "*batch"] | None = None
    """Factor of Q(next_obs) where the episode goes on: γ, or γᵐ after m steps."""
    trail: Trail | None = None
    """The steps in between, for returns over several steps."""
    weight: Float[Arrays, "*batch"] | None = None
    """Weight of each transition in the losses, where they were not drawn uniformly."""


class QPosterior(eqx.Module):
    """The belief about Q at some observations.

    Row and column `i * num_actions + a` of the covariance belong to `mean[i, a]`.
    """

    mean: Float[Array, "observations actions"]
    covariance: Float[Array, "pairs pairs"]


Metrics = dict[str, Float[Array, ""]]
"""Named scalars to log."""


class Update(eqx.Module):
    """The outcome of one gradient step, beside the new state."""

    metrics: Metrics = eqx.field(default_factory=dict)
    errors: Float[Array, " batch"] | None = None
    """Temporal difference error of each example, which a prioritised replay draws by."""


class Schedule(eqx.Module):
    """When an agent acts and learns, and how its batches are drawn.

    The defaults are those of an agent that never learns by gradients.
    """

    updates: int = 0
    """Gradient steps after every episode, or after every `every` steps."""
    every: int = 0
    """Environment steps between updates; 0 updates once per episode (tree and chain)."""
    warmup: int = 0
    """Environment steps of random actions before the first update."""
    envs: int = 1
    """Environments played side by side, each with an index of its own."""
    redraw_every: int = 0
    """Steps after which an index is redrawn within an episode; 0 for never."""
    batch_size: int = 1
    capacity: int = 1
    """Transitions in the replay."""
    replay: str = "uniform"
    """The replay strategy, such as `prioritised(0.6)`."""
    n_step: int = 1
    """Steps over which rewards are summed before the target bootstraps."""
    discount: float = 1.0
    """γ of those sums."""
