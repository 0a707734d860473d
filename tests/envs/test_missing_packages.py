"""A family whose package is not installed says so in one sentence."""

import sys

import pytest

from surveyor.envs import families
from surveyor.errors import SurveyorError


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("bsuite/catch/0", "bsuite.bsuite", "bsuite"),
        ("MiniGrid-Empty-5x5-v0", "minigrid", "minigrid"),
        ("gymnax/Acrobot-v1", "gymnax", "gymnax"),
        ("Navix-FourRooms-v0", "navix", "navix"),
        ("Craftax-Pixels-v1", "craftax.craftax_env", "craftax"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    name, module, package, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SurveyorError) as error:
        families.find(name).make(name, None)
    said = str(error.value)
    assert said.endswith(f'needs {package}: pip install "surveyor[{package}]".')
    assert "\n" not in said
