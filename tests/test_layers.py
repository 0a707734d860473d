"""The source as a whole: imports go one way, units are small, and lists need no JAX."""

import ast
import functools
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import surveyor
from surveyor.cli import main
from surveyor.models.plain_table import PlainTable
from surveyor.training import episodes

SOURCE = Path(surveyor.__file__).parent
ARCHITECTURE = Path(__file__).parent.parent / "docs" / "architecture.md"
RANKS = {
    "types": 0, "errors": 0, "_settings": 0, "_imports": 0, "_programs": 0,
    "plugins": 1,
    "models": 1, "inference": 1, "replay": 1,
    "agents": 2, "envs": 3, "training": 4, "runs": 5, "launch": 6, "sweeps": 7,
    "drawing": 4, "report": 8, "paper": 8, "bench": 8, "cli": 9,
}  # fmt: skip
"""A package may import packages of lower rank only."""
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST_MODULE, LONGEST_FUNCTION = 300, 50


def name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@functools.cache
def tree(path):
    return ast.parse(path.read_text())


def imported(path):
    """Yield every module of surveyor that a module imports, also inside functions."""
    package = ["surveyor", *name(path).split(".")]
    package = package if path.name == "__init__.py" else package[:-1]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def packages(path):
    """Return the packages of surveyor that a module imports, without its own."""
    mine = name(path).partition(".")[0]
    modules = [found.split(".") for found in imported(path)]
    found = {parts[1] for parts in modules if parts[0] == "surveyor" and len(parts) > 1}
    return {package for package in found if package in RANKS} - {mine}


def edges():
    for path in MODULES:
        mine = name(path).partition(".")[0]
        if mine:  # surveyor/__init__.py only names things, and imports them when asked
            yield from ((mine, package, name(path)) for package in packages(path))


def test_every_package_has_a_rank():
    found = {name(path).partition(".")[0] for path in MODULES} - {""}
    assert found == set(RANKS)


def test_imports_go_one_way():
    upwards = {
        f"{module} imports {package}"
        for mine, package, module in edges()
        if RANKS[package] >= RANKS[mine]
    }
    assert not upwards


def test_no_two_packages_import_each_other():
    pairs = {(mine, package) for mine, package, _ in edges()}
    assert not {pair for pair in pairs if pair[::-1] in pairs}


def test_the_top_of_the_package_imports_only_settings_and_errors():
    top = SOURCE / "__init__.py"
    body = [node for node in tree(top).body if isinstance(node, ast.ImportFrom)]
    origins = {f"{node.module}.{alias.name}" for node in body for alias in node.names}
    ours = {origin for origin in origins if origin.startswith("surveyor")}
    light = {f"surveyor.{name}" for name in ("_settings", "_imports", "_programs")}
    assert ours == {*light, "surveyor.errors.SurveyorError"}


def test_modules_and_functions_are_small():
    lines = {name(path): len(path.read_text().splitlines()) for path in MODULES}
    assert not {module: count for module, count in lines.items() if count > LONGEST_MODULE}
    lengths = {
        f"{name(path)}.{node.name}": node.end_lineno - node.lineno + 1
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {each: count for each, count in lengths.items() if count > LONGEST_FUNCTION}


IMPORTED = [name(path) for path in MODULES if path.name != "__main__.py"]


def public(module):
    """Return the public classes and functions that a module defines itself."""
    own = vars(importlib.import_module(f"surveyor.{module}".rstrip("."))).values()
    kinds = [one for one in own if inspect.isclass(one) or inspect.isfunction(one)]
    return [k for k in kinds if k.__module__.endswith(module) and not k.__name__.startswith("_")]


@functools.cache
def protocols():
    classes = [one for module in IMPORTED for one in public(module) if inspect.isclass(one)]
    return [one for one in classes if getattr(one, "_is_protocol", False)]


def documented(kind, method):
    """Return whether a class, one of its bases or a protocol that it has documents a method."""
    had = [p for p in protocols() if all(hasattr(kind, each) for each in vars(p) if each[0] != "_")]
    found = [vars(base)[method] for base in (*kind.__mro__, *had) if method in vars(base)]
    return any(getattr(getattr(one, "__func__", one), "__doc__", None) for one in found)


def test_everything_public_has_a_docstring():
    bare = []
    for module in IMPORTED:
        bare += (
            [] if importlib.import_module(f"surveyor.{module}".rstrip(".")).__doc__ else [module]
        )
        for one in public(module):
            bare += [] if one.__doc__ else [f"{module}.{one.__name__}"]
            methods = vars(one) if inspect.isclass(one) else {}
            for method, value in methods.items():
                plain = getattr(value, "__func__", getattr(value, "fget", value))
                if inspect.isfunction(plain) and plain.__name__[0] not in "_<":
                    bare += [] if documented(one, method) else [f"{module}.{plain.__qualname__}"]
    assert not bare


HEAVY = ("jax", "equinox", "optax", "scipy", "matplotlib", "ray")


@pytest.mark.parametrize(
    "command",
    ["--help", "train --help", "list agents", "list envs", "list presets"],
)
def test_help_and_lists_import_nothing_heavy(command):
    code = (
        "import sys\n"
        "from surveyor.cli import main\n"
        "try:\n"
        f"    code = main({command.split()})\n"
        "except SystemExit as end:\n"
        "    code = end.code\n"
        f"print([name for name in {HEAVY} if name in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() in ("[] 0", "[] None"), done.stderr
    assert done.stdout


def test_importing_surveyor_and_its_presets_imports_nothing_heavy():
    code = (
        "import sys, surveyor, surveyor.agents.presets, surveyor.envs\n"
        "surveyor.agents.find('su').values('tree', 'text')\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_every_public_name_is_there():
    for exported in surveyor.__all__:
        assert getattr(surveyor, exported) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        surveyor.nothing  # noqa: B018


def test_the_walk_to_the_first_gradient_step_is_the_documented_one(tmp_path, monkeypatch):
    """The modules on the call stack of the first gradient step, in order, are bold in the docs."""
    walk: list[str] = []
    fit = PlainTable.fit

    def watched(self, *args, **more):
        if not walk:
            files = [Path(frame.filename) for frame in reversed(inspect.stack()[1:])]
            places = [str(f.relative_to(SOURCE)) for f in files if f.is_relative_to(SOURCE)]
            walk.extend(dict.fromkeys(place.removesuffix("/__init__.py") for place in places))
        return fit(self, *args, **more)

    monkeypatch.setattr(PlainTable, "fit", watched)
    episodes.compile_chunk.cache_clear()
    words = ["train", "Chain-3", "--episodes", "10", "--out", str(tmp_path), "--no-beliefs"]
    assert main(words) == 0
    rows = re.findall(r"^\| \d+ \| (\**)`(.*?)`", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    assert [module for bold, module in rows if bold] == [*walk, "models/plain_table.py"]
    assert len(rows) <= 15
    assert all((SOURCE / module).exists() for _, module in rows)
