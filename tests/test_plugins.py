"""Entry points of installed packages, and modules that are imported on demand."""

import sys

import pytest

from surveyor import agents, plugins
from surveyor.envs import families
from surveyor.errors import SurveyorError

PLUGIN = """
import surveyor as sv
from surveyor.agents import Entry

class PluggedIn(sv.Uniform):
    "Plugged in as a class."

entry = Entry("from-entry", "From entry", "plugged:PluggedIn", "Plugged in as an entry.")
family = sv.envs.Family(
    name="Plugged", usage="Plugged-<L>", summary="A family of a package.",
    matches=lambda name: name.startswith("Plugged-"), make=lambda name, protocol: None,
)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that installs a distribution with entry points."""

    def install(points, code=PLUGIN):
        (tmp_path / "plugged.py").write_text(code)
        folder = tmp_path / "plugged_package-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Name: plugged-package\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(points)

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(agents, "_pending", [agents.ENTRY_POINTS])
    monkeypatch.setattr(families, "_pending", [families.ENTRY_POINTS])
    monkeypatch.setattr(agents, "REGISTRY", dict(agents.REGISTRY))
    monkeypatch.setattr(families, "FAMILIES", list(families.FAMILIES))
    yield install
    sys.modules.pop("plugged", None)


def test_entry_points_add_agents_and_families(installed):
    installed(
        "[surveyor.agents]\none = plugged:PluggedIn\n"
        "[surveyor.families]\nthree = plugged:family\n"
    )  # fmt: skip
    assert "plugged" not in sys.modules
    entry = agents.find("plugged-in")
    assert entry.load() is sys.modules["plugged"].PluggedIn
    assert entry.summary == "Plugged in as a class."
    assert families.find("Plugged-3").name == "Plugged"


def test_an_entry_is_taken_as_it_is(installed):
    installed("[surveyor.agents]\none = plugged:entry\n")
    assert agents.find("from-entry").summary == "Plugged in as an entry."


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import nothing_here", "ModuleNotFoundError: No module named 'nothing_here'"),
        ("family = entry = 3", "it is int, not an Entry or an agent class"),
        ("def", "SyntaxError: invalid syntax"),
    ],
)
def test_a_broken_plugin_is_one_warning_with_the_name_of_its_package(installed, code, reason):
    installed("[surveyor.agents]\none = plugged:entry\n", code)
    with pytest.warns(UserWarning, match=f"of the package plugged-package.*{reason}") as said:
        assert agents.find("su").name == "su"
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    agents.find("su")  # it is said once


def test_modules_are_imported_by_name_or_by_file(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "imported", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "module_of_mine.py").write_text("here = 1\n")
    path = str(tmp_path / "module_of_mine.py")
    assert plugins.import_module(path).here == 1
    assert plugins.import_module("module_of_mine").here == 1
    assert plugins.imported == [path, "module_of_mine"]
    (tmp_path / "json.py").write_text("")
    with pytest.raises(SurveyorError, match="there is another module 'json'; rename the file"):
        plugins.import_module(str(tmp_path / "json.py"))
