"""The examples work as they are, from Python and on the command line."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import surveyor as sv
from surveyor import agents, plugins
from surveyor.cli import main
from surveyor.runs import api
from surveyor.runs.folder import RunFolder

EXAMPLES = Path(__file__).parent.parent / "examples"
FILE = str(EXAMPLES / "my_agent.py")


@pytest.fixture
def fresh(monkeypatch):
    """Let no agent, path or module outlive a test."""
    monkeypatch.setattr(agents, "REGISTRY", dict(agents.REGISTRY))
    monkeypatch.setattr(plugins, "imported", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("my_agent", None)


def script(*words, cwd=None, env=None):
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=300, cwd=cwd, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folder of a run of my_agent.py, trained in another process."""
    out = tmp_path_factory.mktemp("runs")
    code = (
        f"import sys; sys.path.insert(0, {str(EXAMPLES)!r})\n"
        "import my_agent, surveyor as sv\n"
        f"sv.train(my_agent.MyAgent(rate=0.3), 'Tree-6', episodes=30, out={str(out)!r})"
    )
    script("-c", code)
    (path,) = out.iterdir()
    return path


def test_my_agent_is_a_script():
    assert re.search(r"Tree-10 solved at episode \d+", script(FILE))


def test_my_agent_learns_saves_and_resumes_from_python(fresh, tmp_path):
    sys.path.insert(0, str(EXAMPLES))
    from my_agent import MyAgent

    whole = sv.train(MyAgent(), "Chain-5", out=tmp_path / "whole")
    assert whole.solved_at is not None
    stopped = api.begin(whole.config, tmp_path / "stopped")
    next(iter(stopped.advance()))
    stopped.checkpoint()
    resumed = sv.resume(stopped.folder.path)
    assert resumed.metrics == whole.metrics
    assert type(sv.load(resumed.folder.path).agent) is MyAgent


def test_a_run_folder_names_the_class_and_imports_nothing(fresh, trained):
    content = json.loads((trained / "config.json").read_text())
    assert (content["agent"], content["class"]) == ("my-agent", "my_agent:MyAgent")
    sys.path.insert(0, str(EXAMPLES))
    said = (
        r"'Tree-6 my-agent seed 0' was trained by the agent 'my-agent' \(my_agent:MyAgent\), which "
        r"is not known here: import its module first, on the command line with --import my_agent\."
    )
    for action in (sv.load, sv.resume):
        with pytest.raises(sv.SurveyorError, match=said):
            action(trained)
    assert "my_agent" not in sys.modules
    import my_agent

    assert sv.load(trained).agent == my_agent.MyAgent(rate=0.3)


@pytest.mark.parametrize("command", ["status", "plot", "report"])
def test_lists_show_runs_of_unknown_agents(fresh, trained, command, capsys, tmp_path):
    out = [] if command == "status" else ["--out", str(tmp_path / "out")]
    assert main([command, str(trained.parent), *out]) == 0
    if command != "report":
        said = capsys.readouterr().out
        assert "1 run: 1 done." in said if command == "status" else "MyAgent" in said
    else:
        assert '"rate"' in (tmp_path / "out").read_text()
    assert "my_agent" not in sys.modules


def test_the_command_line_imports_it_on_demand(fresh, tmp_path, capsys):
    words = ["train", "Tree-6", "--agent", "my-agent", "--no-beliefs", "--out", str(tmp_path)]
    assert main([*words, "--seed", "1"]) == 2
    assert "There is no agent 'my-agent'" in capsys.readouterr().err
    assert main([*words, "--import", FILE, "--agent.rate", "0.3", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["solved_at"] is not None
    for command in ("resume", "evaluate"):
        assert main([command, run["path"], f"--import={FILE}"]) == 0
    assert RunFolder(run["path"]).config().agent.rate == 0.3
    assert main(["list", "agents", "--import", FILE]) == 0
    assert "my-agent   Q-learning with a bonus" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main([*words, "--import", FILE, "--help"])
    assert end.value.code in (0, None)
    assert "--agent.bonus" in capsys.readouterr().out


def test_worker_processes_import_it_too(tmp_path):
    words = ["train", "Tree-5", "--agent", "my-agent", "--seeds", "2", "--episodes", "20", "--json"]
    said = script("-m", "surveyor.cli", *words, "--import", FILE, "--out", "out", cwd=tmp_path)
    assert [run["seed"] for run in json.loads(said)["runs"]] == [0, 1]


def test_a_sweep_imports_families_and_agents(tmp_path):
    text = 'envs = ["Corridor-5"]\nsteps = 200\n[[agents]]\nagent = "dqn"\n'
    (tmp_path / "sweep.toml").write_text(text)
    family = str(EXAMPLES / "corridor_family.py")
    said = script("-m", "surveyor.cli", "sweep", "sweep.toml", "--import", family, cwd=tmp_path)
    assert "1 of 1 runs are done" in said


def test_the_class_of_a_script_is_known_when_the_script_defines_it_again(fresh, tmp_path):
    code = (EXAMPLES / "my_agent.py").read_text().partition("if __name__")[0]
    (tmp_path / "script.py").write_text(
        code + "import sys\nif len(sys.argv) == 1:\n"
        "    print(sv.train(MyAgent(), 'Tree-5', episodes=20, out='out').progress)\n"
        "else:\n    print(sv.resume(sys.argv[1]).progress)\n"
    )  # fmt: skip
    assert script("script.py", cwd=tmp_path).strip() == "20"
    (path,) = (tmp_path / "out").iterdir()
    assert script("script.py", str(path), cwd=tmp_path).strip() == "20"
    with pytest.raises(sv.SurveyorError, match=r"\(script.py:MyAgent\).* with --import script.py"):
        sv.load(path)


def test_the_page_on_callbacks_runs_as_it_is(tmp_path):
    page = (EXAMPLES.parent / "docs" / "callbacks.md").read_text("utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    stopped, best, patience = script("-c", code, cwd=tmp_path).splitlines()
    assert stopped.startswith("the mean return of evaluation is")
    assert float(best.split()[1]) > 0.9
    assert patience == "no better evaluation in 3"


def test_the_page_on_networks_runs_as_it_is(tmp_path):
    page = (EXAMPLES.parent / "docs" / "networks.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert float(script("-c", code, cwd=tmp_path)) > 0


def test_my_network_is_a_script():
    as_users_compile = {name: x for name, x in os.environ.items() if name != "XLA_FLAGS"}
    said = script(str(EXAMPLES / "my_network.py"), env=as_users_compile)
    found = re.findall(r"(\w+): mean return \d+\.\d", said)
    assert found == ["MyCNN", "Borrowed"]


@pytest.mark.parametrize(
    ("content", "words", "sentence"),
    [
        ("", ["--import"], "--import needs a module or a .py file."),
        ("", ["--import", "no_such_module"], "There is no module 'no_such_module' to import; "
         "--import takes the name of a module or the path of a .py file."),
        ("", ["--import", "no/such.py"], "There is no file 'no/such.py' to import."),
        ("1 / 0", ["--import", "wrong.py"], "'wrong.py' cannot be imported: ZeroDivisionError: "
         "division by zero (wrong.py, line 1)."),
        ("import no_such_module", ["--import", "wrong.py"], "'wrong.py' cannot be imported: "
         "ModuleNotFoundError: No module named 'no_such_module' (wrong.py, line 1)."),
        ("x = (", ["--import", "wrong.py"], "'wrong.py' cannot be imported: SyntaxError: '(' was "
         "never closed (wrong.py, line 1)."),
        ("import surveyor as sv\nclass SU(sv.Uniform): pass", ["--import", "wrong.py"], "There is "
         "an agent 'su' already, surveyor.agents.su:SU; choose another name for wrong:SU."),
    ],
)  # fmt: skip
def test_a_bad_import_is_one_sentence(
    fresh, content, words, sentence, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.py").write_text(content)
    assert main(["list", "agents", *words]) == 2
    assert capsys.readouterr().err.strip() == sentence
    sys.modules.pop("wrong", None)
