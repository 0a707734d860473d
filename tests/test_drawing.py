"""Files of pictures."""

import re

import pytest

from surveyor import drawing

pytest.importorskip("matplotlib")


def drawn(path):
    figure = drawing.new_figure(3.0, 2.0)
    axes = figure.subplots()
    axes.plot([0, 1], [1, 0], marker="o")
    axes.fill_between([0, 1], [0, 0], [1, 0], alpha=0.2)
    axes.set_title("a title to search for")
    return drawing.save(figure, path)


@pytest.mark.parametrize("suffix", drawing.FORMATS)
def test_equal_pictures_are_equal_files(tmp_path, suffix, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    one = drawn(tmp_path / f"one.{suffix}").read_bytes()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "100000000")
    other = drawn(tmp_path / "new" / f"other.{suffix}").read_bytes()
    assert one == other
    assert not re.search(rb"CreationDate|<dc:date>", one)


def test_text_stays_text(tmp_path):
    svg = drawn(tmp_path / "picture.svg").read_text("utf-8")
    assert re.search("<text .*>a title to search for</text>", svg)
    assert "<dc:date>" not in svg
    pdf = drawn(tmp_path / "picture.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert b"/CIDFontType2" in pdf  # TrueType, which editors can change
    assert b"/Type3" not in pdf


def test_a_name_without_suffix_is_a_png(tmp_path):
    path = drawn(tmp_path / "picture")
    assert path == tmp_path / "picture.png"
    assert path.read_bytes().startswith(b"\x89PNG")
