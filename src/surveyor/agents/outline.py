"""Options of an agent, read off the source of its class.

Importing an agent imports JAX, which takes longer than everything that the command line does before
training. An outline is a plain dataclass with the same options: their types, defaults, scopes and
descriptions.
"""

import ast
import builtins
import dataclasses
import functools
import importlib
import importlib.util
from pathlib import Path
from typing import Any, ClassVar, get_origin

from surveyor.agents.options import texts_in

LIGHT = ("collections.abc", "dataclasses", "typing", "surveyor.agents.options", "surveyor.errors")
"""Modules whose names are imported; all others are read."""


class _Unread(type):
    """A name that options mention and that has nothing to do with their values."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unread(name, (), {})

    def __getitem__(cls, item: Any) -> Any:
        return cls


class Source:
    """The names in a module's source, each evaluated when it is asked for."""

    def __init__(self, module: str):
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            raise ImportError(f"There is no source of {module}.")
        self._module, self._known = module, dict[str, Any]()
        self._nodes: dict[str, tuple[ast.stmt, str]] = {}
        for node in ast.parse(Path(spec.origin).read_text("utf-8")).body:
            match node:
                case ast.ImportFrom(names=names):
                    self._nodes |= {each.asname or each.name: (node, each.name) for each in names}
                case ast.ClassDef(name):
                    self._nodes[name] = node, name
                case ast.Assign(targets=[ast.Name(name)]):
                    self._nodes[name] = node, name

    def __getitem__(self, name: str) -> Any:
        if name not in self._nodes and hasattr(builtins, name):
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Any:
        match self._nodes.get(name):
            case ast.ImportFrom(module=str(module)), origin if module in LIGHT:
                return getattr(importlib.import_module(module), origin)
            case ast.ImportFrom(module=str(module)), origin if module.startswith("surveyor."):
                return read(module)[origin]
            case ast.Assign(value=value), _:
                return self._evaluate(value)
            case ast.ClassDef() as node, _ if self._module.startswith("surveyor.agents."):
                return self._outline(node)
        return _Unread(name, (), {})

    def _outline(self, node: ast.ClassDef) -> Any:
        """Return a dataclass with the options of a class and of its bases, and nothing else."""
        parents = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        found = [self._evaluate(parent) for parent in parents]
        bases: Any = tuple(base for base in found if dataclasses.is_dataclass(base))
        hints, body = {}, {}
        for each in node.body:
            match each:
                case ast.AnnAssign(ast.Name(name), annotation, value):
                    hint = self._evaluate(annotation)
                    if ClassVar not in (hint, get_origin(hint)):
                        hints[name] = hint
                        body |= {} if value is None else {name: self._evaluate(value)}
        body |= {"__annotations__": hints, "__texts__": texts_in(node)}
        body |= {"__module__": self._module, "__doc__": ast.get_docstring(node)}
        return dataclasses.dataclass(frozen=True)(type(node.name, bases, body))

    def _evaluate(self, node: ast.expr) -> Any:
        code = compile(ast.Expression(node), self._module, "eval")
        names: Any = self
        return eval(code, {"__builtins__": builtins}, names)


@functools.cache
def read(module: str) -> Source:
    """Return the names in the source of a module of this package."""
    return Source(module)


def outline(target: str) -> Any:
    """Return the outline of a class of this package, given as `module:Class`."""
    module, _, name = target.partition(":")
    return read(module)[name]
