"""Runs to report on, and a browser to look at the report with."""

import dataclasses
import json
import shutil

import pytest

import surveyor as sv
from surveyor.report import collect, page
from surveyor.runs.folder import RunFolder

HOSTILE = "<img src=x onerror='window.hacked=1'></script><script>window.hacked=1</script>"


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A run on the tree with what the agent believed."""
    out = tmp_path_factory.mktemp("tree")
    return sv.train("su", "Tree-6", episodes=60, stop_when_solved=False, out=out, beliefs=True)


@pytest.fixture(scope="session")
def game(tmp_path_factory):
    """A run whose observations are images."""
    agent = dataclasses.replace(
        sv.SUPlus.preset("minatar"), hidden=8, ensemble=4, warmup=64, envs=4
    )
    out = tmp_path_factory.mktemp("game")
    return sv.train(agent, "MinAtar/Breakout", steps=800, out=out, beliefs=True)


@pytest.fixture
def many(tree, tmp_path):
    """Two hundred runs, one of which failed, one of which is damaged, and one with a name and a
    metric that would be a script."""
    folder = tmp_path / "many"
    source = tree.folder.path
    config = json.loads((source / "config.json").read_text())
    for seed in range(200):
        path = folder / (HOSTILE.replace("/", "∕") if seed == 3 else f"Tree-{6 + seed % 3}-s{seed}")
        path.mkdir(parents=True)
        for name in ("metrics.jsonl", "result.json"):
            shutil.copy(source / name, path)
        env = f"Tree-{6 + seed % 3}"
        (path / "config.json").write_text(json.dumps({**config, "seed": seed, "env": env}))
        result = {**json.loads((path / "result.json").read_text()), "solved_at": 10 + seed}
        (path / "result.json").write_text(json.dumps(result))
    (folder / "Tree-7-s1" / "result.json").unlink()
    RunFolder(folder / "Tree-7-s1").fail(f"It is too hot. {HOSTILE}")
    (folder / "Tree-8-s2" / "config.json").write_text("{")
    record = json.dumps({"episode": 10, "returns": [0.0], HOSTILE: 1.0, "test_return": 1.0})
    (folder / HOSTILE.replace("/", "∕") / "metrics.jsonl").write_text(record + "\n")
    return folder


@pytest.fixture
def written(tmp_path):
    def write(folder, **more):
        path = tmp_path / "report.html"
        return page.write(collect.collect(folder, path, **more), path)

    return write


@pytest.fixture(scope="session")
def browser():
    """Chromium without a screen."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.fail("The report is tested in Chromium: apt-get install chromium chromium-driver.")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
                 "disable-background-networking", "disable-component-update", "disable-sync",
                 "window-size=1280,1800"):  # fmt: skip
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield found
    found.quit()
