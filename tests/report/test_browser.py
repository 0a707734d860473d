"""The report, as someone who opens it sees it."""

import base64
import json
import re
import shutil
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from surveyor.report import live
from surveyor.runs import recorder
from surveyor.runs.folder import RunFolder

SHOTS = Path(__file__).parents[2] / "test-artefacts"
"""Pictures of what was tested, for whoever wants to look."""


def open_page(browser, path):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(path if isinstance(path, str) else path.as_uri())


def shot(browser, name):
    SHOTS.mkdir(exist_ok=True)
    browser.save_screenshot(str(SHOTS / f"{name}.png"))


def no_errors(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []


def drawn(browser, place, attribute, trace=0):
    """What Plotly draws there."""
    script = "const t = document.getElementById(arguments[0]).data[arguments[1]][arguments[2]];"
    return browser.execute_script(
        script + "return Array.from(t, (x) => Array.isArray(x) ? x : x);", place, trace, attribute
    )


def move(browser, slider, value):
    browser.execute_script(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('input'));",
        slider,
        value,
    )


def text(browser, name):
    return browser.find_element(By.ID, name).text


def test_a_run_on_the_tree_shows_what_was_written_down_at_every_time(browser, tree, written):
    open_page(browser, written(tree.folder.path))
    folder = RunFolder(tree.folder.path)
    times = folder.snapshot_times()
    assert times == [0, 10, 20, 30, 40, 60]
    assert browser.find_element(By.ID, "slider").get_attribute("max") == str(len(times) - 1)
    assert text(browser, "belief-at") == "episode 60"
    for i in (0, 3, 5):
        move(browser, "slider", i)
        known = recorder.read(folder, times[i])
        assert text(browser, "belief-at") == f"episode {times[i]}"
        np.testing.assert_allclose(drawn(browser, "belief-std", "y"), known["std"][:, 0], rtol=1e-6)
        np.testing.assert_allclose(
            drawn(browser, "belief-policy", "y"), known["probability"], rtol=1e-6
        )
        np.testing.assert_array_equal(
            drawn(browser, "belief-visits", "customdata", 1), known["visits"][:, 1]
        )
        shown = np.array(drawn(browser, "belief-joint", "z"), float)
        np.testing.assert_allclose(shown, known["correlation"].astype(float), atol=0.006)
        chance = drawn(browser, "belief-chance", "y")[i]
        below = 1 / int(known["joint_samples"])  # what is drawn where no sample is optimal
        assert chance == pytest.approx(float(known["joint"]) or below, rel=1e-6)
        symbols = [
            browser.execute_script(
                f"return document.getElementById('belief-paths').data[{k}].marker.symbol"
            )
            for k in range(len(known["paths"]))
        ]
        assert symbols == ["star" if good else "x" for good in known["succeeded"]]
        np.testing.assert_array_equal(drawn(browser, "belief-factorised", "z"), np.eye(6))
        said = text(browser, "belief-path")
        joint, alone = re.findall(r"with (?:probability )?(\d[\d.]*(?:e-\d+)?)\b", said)
        assert float(joint) == pytest.approx(float(known["joint"]), abs=1e-3)
        assert np.log10(float(alone)) == pytest.approx(float(known["log10_factorised"]), abs=0.03)
    browser.execute_script("const m = document.getElementById('move'); m.value = 1; m.onchange();")
    np.testing.assert_allclose(drawn(browser, "belief-std", "y"), known["std"][:, 1], rtol=1e-6)
    recorded = [r["test_return"] for r in folder.metrics()]
    names = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "#metrics .gtitle")]
    assert drawn(browser, f"metric-{names.index('test return')}", "y") == recorded
    shot(browser, "tree")
    assert no_errors(browser)


def test_the_page_is_dark_where_the_system_is_and_prints_light(browser, tree, written):
    open_page(browser, written(tree.folder.path))
    script = (
        "return [getComputedStyle(document.body).backgroundColor,"
        " document.getElementById('belief-std').layout.font.color]"
    )
    assert browser.execute_script(script) == ["rgb(255, 255, 255)", "#1b1f24"]
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    try:
        # The page hears of it with its next frame.
        WebDriverWait(browser, 10).until(
            lambda b: b.execute_script(script) == ["rgb(18, 22, 27)", "#e6e9ed"]
        )
        shot(browser, "dark")
        paper = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        assert base64.b64decode(paper["data"]).startswith(b"%PDF")
        browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        assert browser.execute_script(script) == ["rgb(255, 255, 255)", "#000000"]
        browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
        assert browser.execute_script(script)[1] == "#e6e9ed"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert no_errors(browser)


def test_on_paper_charts_fit_the_page_and_nothing_is_cut_off(browser, game, written):
    open_page(browser, written(game.folder.path))
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    try:
        width = browser.execute_script("return document.body.clientWidth")
        assert 650 < width < 720  # of a page of A4 between its margins
        rights = browser.execute_script(
            "return [...document.querySelectorAll('.main-svg')].map("
            "(chart) => chart.getBoundingClientRect().right)"
        )
        assert len(rights) > 8
        assert max(rights) <= width + 1
    finally:
        browser.execute_script("window.dispatchEvent(new Event('afterprint'))")


def heights(browser):
    return browser.execute_script(
        "return [...document.querySelectorAll('.panel')].filter((p) => p.offsetParent)"
        ".map((p) => [p.getBoundingClientRect().height, p.querySelector('svg').clientHeight])"
    )


def test_charts_keep_to_their_places_when_the_window_changes(browser, tree, written):
    open_page(browser, written(tree.folder.path))
    before = browser.get_window_size()
    try:
        for width in (1200, 500, 1900):
            browser.set_window_size(width, 900)
            WebDriverWait(browser, 10).until(
                lambda b: all(abs(room - chart) < 2 for room, chart in heights(b))
            )
            over = browser.execute_script(
                "const width = document.documentElement.clientWidth;"
                "return [...document.querySelectorAll('.main-svg')].filter("
                "(chart) => chart.getBoundingClientRect().right > width + 1).length"
            )
            assert over == 0
    finally:
        browser.set_window_size(before["width"], before["height"])
    assert no_errors(browser)


def test_one_point_is_seen_and_what_is_no_number_spoils_no_colours(
    browser, tree, written, tmp_path
):
    copy = tmp_path / "copy"
    shutil.copytree(tree.folder.path, copy)
    lines = (copy / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_bytes(lines[0])
    folder = RunFolder(copy)
    look = recorder.read(folder, 30)
    folder.write_snapshot(30, {**look, "std": look["std"] * np.nan, "joint": np.array(np.nan)})
    folder.write_snapshot(20, {**recorder.read(folder, 20), "mean": np.zeros(3)})
    open_page(browser, written(copy))
    assert "20 cannot be read" in text(browser, "missing")
    assert browser.execute_script("return document.getElementById('metric-0').data[0].mode") == (
        "markers"
    )
    scale = browser.execute_script(
        "return document.getElementById('belief-std').layout.yaxis.range"
    )
    assert np.all(np.isfinite(scale))
    move(browser, "slider", 2)
    assert text(browser, "belief-at") == "episode 30"
    assert "nothing is known of whole sampled policies" in text(browser, "belief-path")
    assert no_errors(browser)


def test_the_play_button_moves_the_slider_to_its_end(browser, tree, written):
    open_page(browser, written(tree.folder.path))
    button = browser.find_element(By.ID, "play")
    # In one script: on a busy machine the slider moves on before a second call reads it.
    script = "const [play, at] = arguments; play.click(); return [at.textContent, play.textContent]"
    at = browser.find_element(By.ID, "belief-at")
    assert browser.execute_script(script, button, at) == ["episode 0", "Pause"]
    WebDriverWait(browser, 15).until(lambda b: text(b, "belief-at") == "episode 60")
    WebDriverWait(browser, 5).until(lambda b: button.text == "Play")
    assert no_errors(browser)


def test_an_episode_has_frames_with_q_values_beside_them(browser, game, written):
    path = written(game.folder.path)
    open_page(browser, path)
    data = json.loads(browser.execute_script("return document.getElementById('data').textContent"))
    episode = data["runs"][0]["episode"]
    last = len(episode["frames"]) - 1
    move(browser, "episode-slider", last)
    assert text(browser, "episode-at") == f"step {episode['steps'][last]}"
    assert browser.find_element(By.ID, "frame").get_attribute("src") == episode["frames"][last]
    assert browser.find_element(By.ID, "frame").get_property("naturalWidth") == 10
    assert len(drawn(browser, "episode-q", "y")) == 3
    colours = browser.execute_script(
        "return document.getElementById('episode-q').data[0].marker.color"
    )
    assert [i for i, each in enumerate(colours) if each == "#d95f02"] == [episode["taken"][last]]
    moments = browser.find_elements(By.CSS_SELECTOR, "#moments button")
    assert len(moments) == len(episode["moments"]) > 0
    moments[0].click()
    assert text(browser, "episode-at") == f"step {episode['moments'][0]}"
    looks = [
        RunFolder(game.folder.path).read_snapshot(at) for at in data["runs"][0]["beliefs"]["at"]
    ]
    seen = [look["mean"][0, 2] for look in looks]
    np.testing.assert_allclose(drawn(browser, "belief-seen-0", "y", 5), seen, rtol=1e-5)
    titles = {e.text for e in browser.find_elements(By.CSS_SELECTOR, "#metrics .gtitle")}
    assert {"supposed", "curiosity", "q loss"} <= titles
    shot(browser, "minatar")
    assert no_errors(browser)


def busy(browser):
    """Seconds of processor that the page's process has taken, whatever else the machine does."""
    browser.execute_cdp_cmd("Performance.enable", {})
    found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(one["value"] for one in found if one["name"] == "ProcessTime")


def test_two_hundred_runs_open_soon_sort_and_filter_and_run_no_script(browser, many, written):
    path = written(many)
    assert path.stat().st_size < 30e6
    before = busy(browser)
    open_page(browser, path)
    browser.execute_script("return document.getElementById('runs').rows.length")
    after = busy(browser)
    assert (after - before if after > before else after) < 3  # a page may get a process of its own

    def column(key):
        keys = [head.get_attribute("data-key") for head in find("#runs th")]
        return [cell.text for cell in find(f"#runs td:nth-child({1 + keys.index(key)})")]

    find = lambda selector: browser.find_elements(By.CSS_SELECTOR, selector)  # noqa: E731
    assert text(browser, "count") == "200 of 200 runs"
    head = browser.find_element(By.CSS_SELECTOR, "th[data-key='solved_at']")
    head.click()
    solved = [int(value) for value in column("solved_at") if value]
    assert solved == sorted(solved)
    assert len(solved) == 199
    browser.find_element(By.CSS_SELECTOR, "th[data-key='solved_at']").click()
    assert [int(value) for value in column("solved_at") if value] == solved[::-1]
    browser.find_element(By.ID, "filter").send_keys("tree-7 failed")
    assert column("name") == ["Tree-7-s1"]
    assert "It is too hot." in column("reason")[0]
    browser.find_element(By.CSS_SELECTOR, "#runs a").click()
    WebDriverWait(browser, 5).until(lambda b: text(b, "run-name") == "Tree-7-s1")
    browser.find_element(By.ID, "filter").clear()
    browser.find_element(By.ID, "filter").send_keys("onerror")
    browser.find_element(By.CSS_SELECTOR, "#runs a").click()
    time.sleep(0.5)
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements(By.CSS_SELECTOR, "main img[src='x']") == []
    assert len(browser.find_elements(By.CSS_SELECTOR, "#scaling .panel")) == 1
    shot(browser, "sweep")
    assert no_errors(browser)


@pytest.fixture
def server(tree):
    found = live.server(tree.folder.path)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{found.server_address[1]}/"
    found.shutdown()
    found.server_close()
    thread.join(10)
    assert not thread.is_alive()


def test_the_live_page_follows_the_run_folder_and_answers_nobody_else(browser, tree, server):
    open_page(browser, server)
    metrics = tree.folder.path / "metrics.jsonl"
    before = metrics.read_bytes()
    try:
        with metrics.open("ab") as file:
            file.write(json.dumps({"episode": 70, "returns": [0.5], "test_return": 0.25}).encode())
            file.write(b"\n")
        names = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "#metrics .gtitle")]
        place = f"metric-{names.index('test return')}"
        WebDriverWait(browser, 10).until(lambda b: drawn(b, place, "y")[-1] == 0.25)
    finally:
        metrics.write_bytes(before)
    assert re.search("live", text(browser, "subtitle"))
    assert no_errors(browser)
    for address, host in ((server, "evil.example"), (server + "../config.json", "127.0.0.1:1")):
        request = urllib.request.Request(address, headers={"Host": host})
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=5)
