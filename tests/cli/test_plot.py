"""`surveyor plot`."""

import pytest

from surveyor.cli import main
from tests.sweeps.common import interval, write_run

pytest.importorskip("matplotlib")
BEGINNINGS = {"png": b"\x89PNG", "pdf": b"%PDF-", "svg": b"<?xml"}


@pytest.fixture
def runs(tmp_path):
    metrics = [interval(10, 0.0, 1.0), interval(100, 1.0, 1.0)]
    result = {"episodes": 100}
    for agent in ("uniform", "psrl"):
        write_run(tmp_path, agent, agent=agent, hyperparameters={}, metrics=metrics, result=result)
    return tmp_path


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_pictures_in_every_format(runs, kind, capsys):
    assert main(["plot", str(runs), "--format", kind]) == 0
    said = capsys.readouterr().err
    for name in ("curves", "profiles"):
        path = runs / "plots" / f"{name}.{kind}"
        assert path.read_bytes().startswith(BEGINNINGS[kind])
        assert str(path) in said
    assert len(list((runs / "plots").iterdir())) == 4


def test_out_is_a_folder_and_not_a_file(runs, capsys):
    assert main(["plot", str(runs), "--out", str(runs / "figs.PDF")]) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"pictures: --out {runs / 'figs'} --format pdf\n")
    assert said.count("\n") == 1
    assert not (runs / "figs.PDF").exists()
    assert main(["plot", str(runs), "--out", str(runs / "v0.2")]) == 0
    assert (runs / "v0.2" / "curves.png").exists()


def test_other_formats_are_refused(runs, capsys):
    assert main(["plot", str(runs), "--format", "gif"]) == 2
    said = capsys.readouterr().err
    assert "format must be one of" in said
    assert "pdf" in said
    assert said.count("\n") == 1
