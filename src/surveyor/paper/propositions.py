"""Propositions 1 to 5 of the paper: their predictions beside measurements.

All draws are from NumPy in float64 with a fixed seed. Agents of this library appear where a
proposition is about them (UBE in 1, the exact model of section 4 in 2 and 3).
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from surveyor import UBE, drawing, envs
from surveyor.agents.ideal_su import IdealSU, IdealSUState
from surveyor.errors import SurveyorError
from surveyor.paper.checks import HEADER, Check, compared, draw, geometric_median, pieces, share
from surveyor.paper.options import Options
from surveyor.runs import api
from surveyor.sweeps.text import table, write
from surveyor.types import Transition

PANELS = {
    "1: P(all UP) ≤ 2^-L": ("1",),
    "2: P(action), Gumbel = model": ("2",),
    "3: P(not UP) ≤ ε_N": ("3",),
    "4, 5: median episodes ≤ bound": ("4", "5"),
}
"""Propositions in each panel of the picture, by its title."""
NOTE = (
    "In proposition 2 the predicted probabilities are estimates too, from as many draws of the "
    "model. The intervals beside them are wider by the error of these estimates."
)


def run(options: Options) -> None:
    """Measure all predictions, and write propositions.json, .md and .png."""
    drawing.require_matplotlib()
    draws = 20_000 if options.quick else 1_000_000
    rng = np.random.default_rng(0)
    measures = (proposition_1, proposition_2, proposition_3, propositions_4_and_5)
    checks = [check for measure in measures for check in measure(rng, draws)]
    lines = ["# The propositions", "", f"Up to {draws:,} draws for each number.", ""]
    lines += [*table(HEADER, [check.cells for check in checks]), "", NOTE]
    panels = {
        title: [c for c in checks if c.proposition in numbers and c.relation != "≠"]
        for title, numbers in PANELS.items()
    }
    picture = draw(panels, options.out / "propositions.png")
    write(options.out, "propositions", [dataclasses.asdict(c) for c in checks], lines, picture)


def proposition_1(rng: np.random.Generator, draws: int) -> Iterator[Check]:
    """Check that factorised, symmetric beliefs follow L given actions with at most 2^-L."""
    families: dict[str, Callable[..., np.ndarray]] = {
        "normal": rng.standard_normal,
        "Laplace": lambda size: rng.laplace(size=size),
        "uniform": lambda size: rng.uniform(-1, 1, size),
    }
    for (name, noise), actions, length in product(families.items(), (2, 3), (2, 4, 8)):
        scale = np.exp(rng.normal(size=(length, actions)) * (actions == 2))
        found = sum(
            int(np.sum(np.all(np.argmax(scale * noise((n, *scale.shape)), -1) == 0, -1)))
            for n in pieces(draws)
        )
        case = f"{name}, {actions} actions, L={length}"
        yield Check("1", case, "≤", 2.0**-length, *share(found, draws))
    for length in (2, 4, 8):
        found = _ube_successes(length, draws)
        yield Check("1", f"UBE after 30 episodes, L={length}", "≤", 2.0**-length, *found)


def _ube_successes(length: int, draws: int) -> tuple[float, float, float]:
    """Return how often a sample of a trained UBE goes up all the way, before any reward."""
    agent = UBE()
    run = api.train(agent, "Tree-40", episodes=30)  # too deep to find the goal
    if run.first_success is not None:
        raise SurveyorError("UBE found the goal, but proposition 1 is about the time before.")
    _, params = envs.make(run.config.env, run.config.seed)
    path, state = 2 * jnp.arange(length), run.state
    up = jnp.asarray(params.mapping[:length], jnp.int32)

    @jax.jit
    def successes(keys):
        q = jax.vmap(lambda key: agent.q(state, agent.sample(state, key), path))
        return jnp.sum(jnp.all(jnp.argmax(q(keys), axis=-1) == up, axis=-1))

    keys = jax.random.split(jax.random.key(1), draws)
    found = sum(int(successes(part)) for part in np.array_split(keys, max(1, draws // 50_000)))
    return share(found, draws)


def proposition_2(rng: np.random.Generator, draws: int) -> Iterator[Check]:
    """Check that Gumbel noise gives the model's action probabilities, at another variance."""
    agent, state = explored(size=3, episodes=12, rng=rng)
    belief = agent.q_posterior(state, jnp.arange(0, 6, 2))
    mean = np.asarray(belief.mean, float)
    root = np.linalg.cholesky(np.asarray(belief.covariance, float) + 1e-9 * np.eye(6))
    q = (mean.reshape(-1) + rng.standard_normal((draws, 6)) @ root.T).reshape(draws, 3, 2)
    preferred = q[..., 0] > q[..., 1]
    p = np.mean(preferred, axis=0)
    logs = np.log(np.stack([p, 1 - p], -1))
    gumbel = 2.0 * (rng.gumbel(size=(draws, 3, 2)) + logs)  # the same at any scale
    chosen = gumbel[..., 0] > gumbel[..., 1]
    for s in range(3):
        counts = int(preferred[:, s].sum()), int(chosen[:, s].sum())
        yield Check("2", f"P(action 0) in s_{2 * s}", "=", *compared(*counts, draws))
    variance = float(np.var(gumbel[:, 0, 0]))
    spread = 1.96 * variance * math.sqrt((stats.kurtosis(gumbel[:, 0, 0]) + 2) / draws)
    case = "variance of Q(s_0, 0) differs from the model's"
    predicted = float(belief.covariance[0, 0])
    yield Check("2", case, "≠", predicted, variance, variance - spread, variance + spread)
    counts = int(np.all(preferred, axis=1).sum()), int(np.all(chosen, axis=1).sum())
    case = "P(action 0 in all states) differs from the model's"
    yield Check("2, beyond it", case, "≠", *compared(*counts, draws))


def explored(size: int, episodes: int, rng: np.random.Generator) -> tuple[IdealSU, IdealSUState]:
    """Return the exact model on a tree, action 0 being UP, after uniform exploration, π uniform."""
    agent = IdealSU.preset("tree")
    env, _ = envs.make(f"Tree-{size}")
    state = agent.init(env.spec, jax.random.key(0))
    for _ in range(episodes):
        actions = rng.integers(0, 2, size)
        length = int(np.argmax(actions)) + 1 if actions.any() else size
        obs = 2 * np.arange(size, dtype=np.int32)
        goal = (np.arange(size) == size - 1) & (actions == 0)
        episode = Transition(
            jnp.asarray(obs),
            jnp.asarray(actions, jnp.int32),
            jnp.zeros(size),  # as in the proofs, before the reward is seen
            jnp.asarray(obs + np.where(actions == 0, 2, 1), jnp.int32),
            jnp.asarray(goal | (actions == 1)),
        )
        state = agent.observe(state, episode, jnp.arange(size) < length)
    return agent, state


def proposition_3(rng: np.random.Generator, draws: int) -> Iterator[Check]:
    """Check that SU prefers UP but for a share of ε_N, and the lemmas on the exact model."""
    n = min(draws, 200_000)
    for visits in (1, 2, 5, 10, 20, 50, 100):
        failed = int(np.sum(~upward(visits, n, rng)))
        yield Check("3", f"P(not UP > DOWN), N={visits}", "≤", epsilon(visits), *share(failed, n))
    agent, state = explored(size=6, episodes=60, rng=rng)
    covariance = np.array(agent.q_posterior(state, jnp.arange(0, 12, 2)).covariance, float)
    up, down = np.arange(0, 12, 2), np.arange(1, 12, 2)
    worst = max(float(abs(covariance[up[j + 1] :, down[j]]).max()) for j in range(5))
    yield Check("3, lemma 2", "Cov(Q(s_k, ·), Q(s_j, DOWN)), j < k", "=", 0.0, worst, -worst, worst)
    ratio = float(covariance[up[3], up[1]] / covariance[up[3], up[3]])
    case = "Cov(Q(s_6, UP), Q(s_2, UP)) / Var(Q(s_6, UP))"
    yield Check("3, lemma 4", case, "=", 0.25, ratio, ratio - 1e-4, ratio + 1e-4)
    difference = covariance[np.ix_(up, up)] - covariance[np.ix_(up, down)]
    difference += covariance[np.ix_(down, down)] - covariance[np.ix_(down, up)]
    root = np.linalg.cholesky(difference + 1e-12 * np.eye(6))
    for k in (1, 2, 3):
        before, both = 0, 0
        for n in pieces(draws):
            positive = rng.standard_normal((n, 6)) @ root.T > 0
            given = np.all(positive[:, :k], axis=1)
            before, both = before + int(given.sum()), both + int((given & positive[:, k]).sum())
        case = f"P(UP in s_{2 * k} | UP before), exact model after 60 episodes"
        yield Check("3, lemma 1", case, ">", 0.5, *share(both, before))


def epsilon(visits: int) -> float:
    """Return the bound of proposition 3: 0.75^N e^(-N/50) + (1 - 0.75^N) e^(-0.175 N)."""
    p = 0.75**visits
    return p * math.exp(-visits / 50) + (1 - p) * math.exp(-0.175 * visits)


def upward(visits: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw whether Var(Q(s_k, UP)) > Var(Q(s_k, DOWN)) after N visits under uniform exploration.

    By lemmas 1 and 4 this is when UP is more likely than not. With π uniform,
    Var(Q(s, UP)) = ν(n_up) + ¼ (Var(Q(s', UP)) + ν(n'_down)), as far as s' has been visited.
    """
    theta, beta = 1e4, 1e-3  # variances of the prior and of a reward
    variance = down_here = np.zeros(draws)
    arrivals, weight = np.full(draws, visits), 1.0
    while np.any(arrivals > 0) and weight > 1e-12:
        ups = rng.binomial(arrivals, 0.5)
        nu_up, nu_down = (
            np.where(arrivals > 0, 1 / (1 / theta + n / beta), 0.0) for n in (ups, arrivals - ups)
        )
        if weight == 1.0:  # in s_k itself
            variance, down_here = nu_up, nu_down
        else:
            variance = variance + weight * (nu_up + nu_down)
        arrivals, weight = ups, weight / 4
    return variance > down_here


def propositions_4_and_5(rng: np.random.Generator, draws: int) -> Iterator[Check]:
    """Check that BDQN's prior alone solves trees with tied actions in a bounded median time."""
    n = min(draws, 100_000)
    activations = (
        ("4", "sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("5", "ReLU", lambda x: np.maximum(x, 0)),
    )
    for (number, name, activation), d, length in product(activations, (1, 2, 4), (10, 50)):
        found = sum(_tied_successes(activation, d, length, m, rng) for m in pieces(n))
        bound = geometric_median(2.0**-d * ((1 - 2.0**-d) ** length if number == "5" else 1.0))
        p, low, high = share(found, n)
        measured = map(geometric_median, (p, high, low))
        yield Check(number, f"{name}, d={d}, L={length}: median episodes", "≤", bound, *measured)


def _tied_successes(activation, d: int, length: int, draws: int, rng) -> int:
    features = activation(rng.standard_normal((draws, length, d)))
    difference = rng.standard_normal((draws, d)) * math.sqrt(2)
    advantage = np.einsum("nld,nd->nl", features, difference)
    ties = rng.random((draws, length)) < 0.5  # if no unit is active, both actions have Q = 0
    return int(np.sum(np.all((advantage > 0) | ((advantage == 0) & ties), axis=1)))
