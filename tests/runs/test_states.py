"""States of agents that a run cannot keep are refused before anything is trained or written."""

from typing import Any

import jax.numpy as jnp
import pytest

import surveyor as sv


class Remembering(sv.Uniform):
    """Returns the state that it is given."""

    kind: str = "text"

    def init(self, spec: sv.EnvSpec, key: Any) -> Any:
        states = {
            "text": {"visits": jnp.zeros(3), "history": "nothing yet"},
            "object": (jnp.zeros(3), object()),
            "number": {"count": 3},
            "key": {"key": key},
        }
        return states[self.kind]


@pytest.mark.parametrize("env", ["Tree-4", "CartPole-v1"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("text", r"state\['history'\] is str"),
        ("object", r"state\[1\] is object"),
        ("number", r"state\['count'\] is int"),
        ("key", r"state\['key'\] is key<fry>"),
    ],
)
def test_a_state_with_other_leaves_than_arrays_is_refused(tmp_path, env, kind, said):
    budget = {"episodes": 10} if env == "Tree-4" else {"steps": 10}
    with pytest.raises(sv.SurveyorError, match=f"Remembering must be a pytree .*{said}: make it"):
        sv.train(Remembering(kind=kind), env, out=tmp_path, **budget)
    assert not list(tmp_path.iterdir())
