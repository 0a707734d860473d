"""The command line, as a user meets it."""

import dataclasses
import json
import subprocess
import sys

import pytest

import surveyor as sv
from surveyor.cli import main
from surveyor.launch import work

NO = "--no-beliefs"
"""What most tests say, for speed."""


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    assert main(["train", "Tree-4", "--out", str(out), "--plot", str(out / "a" / "p.png")]) == 0
    assert (out / "a" / "p.png").stat().st_size > 10_000
    assert len(list(out.glob("*/beliefs/*.npz"))) > 2
    return next(path for path in out.iterdir() if path.name.startswith("Tree-4-su-plus-s0"))


def last_json(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_json_for_one_seed(tmp_path, capsys):
    code = main(
        ["train", "Tree-4", "--agent=su", "--seed", "7", "--out", str(tmp_path), "--json", NO]
    )
    assert code == 0
    outcome = last_json(capsys)
    assert set(outcome) == {"env", "agent", "runs", "median_solved_at"}
    (run,) = outcome["runs"]
    assert not list(tmp_path.glob("*/beliefs"))
    assert list(run) == [
        "seed", "solved_at", "first_success", "episodes", "gradient_steps", "seconds", "path",
    ]  # fmt: skip
    assert (outcome["env"], outcome["agent"], run["seed"]) == ("Tree-4", "su", 7)
    assert outcome["median_solved_at"] == run["solved_at"] == run["episodes"] - 90
    assert run["path"].startswith(str(tmp_path))


def test_several_seeds_in_processes_are_the_same_runs(tmp_path, capsys):
    """Through a real process: worker processes start from the main module."""
    command = [
        sys.executable, "-m", "surveyor.cli", "train", "Tree-4", "--seeds", "3", "--out",
        str(tmp_path), "--json", NO,
    ]  # fmt: skip
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr
    outcome = json.loads(answer.stdout.splitlines()[-1])
    assert [run["seed"] for run in outcome["runs"]] == [0, 1, 2]
    solved = sorted(run["solved_at"] for run in outcome["runs"])
    assert outcome["median_solved_at"] == solved[1]
    assert main(["train", "Tree-4", "--seed", "2", "--out", str(tmp_path / "b"), "--json", NO]) == 0
    alone = last_json(capsys)["runs"][0]
    assert {**alone, "seconds": 0, "path": 0} == {**outcome["runs"][2], "seconds": 0, "path": 0}


def test_unsolved_is_null(tmp_path, capsys):
    arguments = ["train", "Tree-30", "--agent", "uniform", "--episodes", "20", NO]
    assert main([*arguments, "--out", str(tmp_path), "--json"]) == 0
    outcome = last_json(capsys)
    assert outcome["median_solved_at"] is None
    assert outcome["runs"][0]["solved_at"] is None
    assert outcome["runs"][0]["first_success"] is None


def test_hyperparameters_can_be_set_and_start_from_the_environment_s_preset(tmp_path):
    arguments = ["train", "Tree-4", "--agent.contraction", "1e3", "--agent.curiosity=0.1", NO]
    assert main([*arguments, "--episodes", "20", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    values = json.loads((path / "config.json").read_text())["hyperparameters"]
    assert (values["contraction"], values["curiosity"]) == (1e3, 0.1)
    assert (values["learning_rate"], values["discount"]) == (0.8, 1.0)


@pytest.mark.parametrize(
    ("env", "option", "value"),
    [
        ("CartPole-v1", "bins", 16),
        ("MinAtar/Breakout", "batch-size", 16),
        ("Tree-4", "batch-size", 30),  # as many as its replay takes of the recent and the best
    ],
)
def test_options_are_checked_with_the_environment_s_own_defaults(env, option, value, monkeypatch):
    asked = []
    monkeypatch.setattr(work, "train_alone", lambda configs, *_: asked.extend(configs) or [])
    main(["train", env, f"--agent.{option}", str(value)])
    assert getattr(asked[0].agent, option.replace("-", "_")) == value


def test_the_preset_is_the_environment_s_wherever_its_name_stands(tmp_path):
    arguments = ["train", "--json", NO, "--keep-going", "Tree-4", "--episodes", "10"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    assert json.loads((path / "config.json").read_text())["hyperparameters"]["discount"] == 1.0


def test_resume_and_evaluate(run_path, capsys):
    assert main(["resume", str(run_path), "--json"]) == 0
    assert last_json(capsys)["runs"][0]["solved_at"] is not None
    assert main(["evaluate", str(run_path), "--episodes", "3", "--json"]) == 0
    assert last_json(capsys)["returns"] == [1.0, 1.0, 1.0]
    assert main(["evaluate", str(run_path)]) == 0
    assert "100% optimal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("agents", "su         Successor Uncertainties, algorithm 1"),
        ("agents", "su-plus    SU+, this library's"),
        ("envs", "TiedTree-<L>"),
        ("presets", "on chain: learning_rate 0.8, settling 0.0"),
        ("presets", "--agent bootdqn --preset paper_25x: table 2"),
        ("presets", "--agent su --preset released (default)"),
    ],
)
def test_list(what, expected, capsys):
    assert main(["list", what]) == 0
    assert expected in capsys.readouterr().out


def test_a_preset_sets_the_defaults_and_an_option_still_wins(tmp_path, capsys):
    words = [
        "train",
        "Tree-4",
        "--agent",
        "bootdqn",
        "--preset",
        "paper_25x",
        "--agent.ensemble",
        "3",
    ]
    assert main([*words, "--episodes", "10", "--out", str(tmp_path), "--json", NO]) == 0
    agent = sv.load(last_json(capsys)["runs"][0]["path"]).agent
    assert agent == dataclasses.replace(sv.BootDQN.preset("tree", "paper_25x"), ensemble=3)


BAD = [
    (
        ["train", "Tree-4", "--agent", "bootdqn", "--preset", "paper_25"],
        "did you mean 'paper_25x'?",
    ),
    (
        ["train", "Tree-4", "--agent", "dqn", "--preset", "x"],
        "There is no preset of dqn 'x'; there is: default.",
    ),
    (["trian", "Tree-10"], "did you mean 'train'?"),
    (["train", "Trea-10"], "did you mean 'Tree-10'?"),
    (["train", "Tree-0"], "at least 1, not '0'"),
    (["train", "Tree-ten"], "not 'ten'"),
    (["train", "Tree-10", "--agent", "sue"], "There is no agent 'sue'; did you mean 'su'?"),
    (["train", "Tree-10", "--agent.spread", "0"], "spread must be a positive number, not 0."),
    (
        ["train", "Tree-10", "--agent=su", "--agent.theta", "-1"],
        "theta must be a positive number, not -1.",
    ),
    (
        ["train", "Tree-10", "--agent=su", "--agent.zeta", "1.5"],
        "zeta must be above 0 and at most 1",
    ),
    (["train", "Tree-10", "--episodes", "0"], "episodes must be at least 1, not 0."),
    (["train", "Tree-10", "--seeds", "0"], "seeds must be at least 1, not 0."),
    (["train", "Tree-10", "--seed", "-1"], "seed must be between 0 and 2^32 - 1, not -1."),
    (["train", "Tree-4", "--out", "/proc/nowhere"], "cannot be written"),
    (["train", "Chain-4", "--agent", "bootdqn", "--preset", "paper_1x"], "is for tree, not chain"),
    (["train", "Tree-10", "--agent.n-step", "1"], "n_step has no effect on Tree-10: it is for"),
    (["train", "Tree-10", "--agent.torso", "mlp"], "torso has no effect on Tree-10: it is for"),
    (
        ["train", "Tree-10", "--agent.bins", "4"],
        "bins has no effect on Tree-10: it is for networks",
    ),
    (["train", "Tree-10", "--agent.batch-size", "29"], "together at most batch_size = 29"),
    (["train", "Tree-10", "--agent.replay", "prioritised(0.6)"], "prioritised(0.6) is for"),
    (["train", "Tree-10", "--agent.replay", "priority"], "did you mean 'prioritised'?"),
    (["train", "Tree-10", "--steps", "5"], "--steps has no effect on Tree-10"),
    (["train", "Tree-10", "--protocol", "paper"], "--protocol has no effect on Tree-10"),
    (["train", "CartPole-v1", "--keep-going"], "--keep-going has no effect on CartPole-v1"),
    (
        ["train", "CartPole-v1", "--agent=su", "--agent.layers", "two"],
        "layers has no effect on CartP",
    ),
    (["train", "--agent"], "--agent needs a value."),
    (["train", "--agent", "--preset", "text"], "--agent needs a value."),
    (["train", "Tree-4", "--agent="], "--agent needs a value."),
    (["train", "Tree-4", "--agent", "SU+"], "There is no agent 'SU+'; did you mean 'su-plus'?"),
    (["train", "Tree-4", "Chain-4"], "'Chain-4' is a word too many."),
    (["train", "ALE/Pong", "--frames", "-5"], "frames must be at least 1, not -5."),
    (
        [
            "train",
            "Tree-4",
            "--agent=su",
            "--agent.policy=per_example",
            "--agent.policy-samples=20",
        ],
        "it needs policy = joint or marginal.",
    ),
    (
        ["train", "MinAtar/Breakout", "--agent", "hyperagent", "--agent.target-indices", "9"],
        "it needs target = optimistic.",
    ),
    (["paper", "fig2", "--algorithms", "SU"], "there is: SU (released), SU+, SU (text)."),
    (["resume", "no/such/run"], "There is no run folder 'no/such/run'."),
    (["evaluate", "no/such/run"], "There is no run folder 'no/such/run'."),
    (["evaluate", "tests"], "'tests' is not a run folder: it has no config.json."),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments, sentence, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""


def test_resuming_with_other_hyperparameters_is_refused(run_path, capsys):
    assert main(["resume", str(run_path), "--agent.spread", "3"]) == 2
    assert "A run keeps the agent and the hyperparameters" in capsys.readouterr().err


def help_of(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*words, "--help"])
    assert stop.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def test_help_shows_the_options_that_have_an_effect_with_the_environment_s_defaults(capsys):
    tree = help_of(["train", "Tree-100"], capsys)
    assert "usage: surveyor train ENV" in tree
    assert "options of su-plus on Tree-100" in tree
    assert "--agent.gradient-steps" in tree
    assert "default: 40" in tree  # the tree's, not the chain's 100
    for word in ("--agent.torso", "--agent.n-step", "--agent.bins", "--steps", "--protocol"):
        assert word not in tree
    pole = help_of(["train", "CartPole-v1", "--agent", "su"], capsys)
    for word in ("--steps", "--agent.hidden", "--agent.redraw-every"):
        assert word in pole
    for word in ("--episodes", "--keep-going", "--agent.layers", "--agent.bins"):
        assert word not in pole
    assert "Give ENV to see all options" in help_of(["train"], capsys)
    assert "By default 5,000." in tree
    assert "By default 1,000,000." in help_of(["train", "MinAtar/Breakout"], capsys)


def test_a_run_that_is_refused_leaves_no_folder(tmp_path, capsys):
    words = ["train", "Pendulum-v1", "--out", str(tmp_path)]
    assert main(words) == 2
    assert "continuous actions" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"surveyor {sv.__version__}\n"


def test_help_teaches(capsys):
    assert main(["--help"]) == 0
    assert "surveyor train Tree-100" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["train", "Tree-10", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--agent.contraction" in text
    assert "Prior variance" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("resume", "surveyor resume needs to know: The run's folder."),
        ("train Tree-4 --episodes ten", "--episodes takes INT, not 'ten'."),
        ("train Tree-4 --episodes", "--episodes needs a value."),
        ("train Tree-4 --agent.spread x", "--agent.spread takes FLOAT, not 'x'."),
        (
            "train Tree-4 --agent.spred 1",
            "There is no option '--agent.spred'; did you mean '--agent.spread'?",
        ),
        (
            "train Tree-4 --agent=su --agent.policy foo",
            "--agent.policy must be one of 'joint', 'per_example', 'marginal', not 'foo'.",
        ),
        (
            "train",
            "Which environment? For example: surveyor train Tree-100",
        ),
        ("list agentz", "There is no list 'agentz'; did you mean 'agents'?"),
    ],
)
def test_a_wrong_option_gets_one_sentence(words, sentence, capsys):
    assert main(words.split()) == 2
    assert capsys.readouterr().err.strip() == sentence
