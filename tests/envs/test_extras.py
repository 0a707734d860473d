"""Each extra installs what its family needs, in an environment where nothing else is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NAMES = {
    "bsuite": "bsuite/cartpole_swingup/5",
    "craftax": "Craftax-Classic-Symbolic-v1",
    "gymnax": "gymnax/CartPole-v1",
    "minigrid": "MiniGrid-Empty-8x8-v0",
    "navix": "Navix-Empty-8x8-v0",
}


def run(*words, cwd):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=1200)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("extra", NAMES)
def test_an_extra_is_all_that_a_family_needs(extra, tmp_path):
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    binaries = tmp_path / "env" / "bin"
    install = ("pip", "install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt")
    run(binaries / "python", "-m", *install, f"{ROOT}[{extra}]", cwd=tmp_path)
    for agent in ("su-plus", "dqn"):
        command = ("train", NAMES[extra], "--agent", agent, "--steps", 5_000, "--json")
        answer = run(binaries / "surveyor", *command, cwd=tmp_path).splitlines()[-1]
        assert json.loads(answer)["runs"][0]["steps"] >= 5_000
