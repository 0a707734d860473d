"""Set-up of other packages once they are imported, without importing them."""

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from typing import Any


class _After(importlib.abc.MetaPathFinder):
    """Finds one package as usual, and calls a function once it is loaded."""

    def __init__(self, name: str, then: Callable[[], None]):
        self.name, self.then = name, then

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader, load = spec.loader, spec.loader.exec_module

            def exec_module(module: Any) -> None:
                load(module)
                self.then()

            loader.exec_module = exec_module
        return spec


def after(name: str, then: Callable[[], None]) -> None:
    """Call a function now if a package is loaded, or else once it is."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _After(name, then))
