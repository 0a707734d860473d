"""Registration of surveyor's Gymnasium ids once Gymnasium is imported, without importing it."""

import importlib
import importlib.abc
import importlib.util
import sys
from typing import Any


class _AfterGymnasium(importlib.abc.MetaPathFinder):
    """Finds Gymnasium as usual, and registers the ids once it is loaded."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader, load = spec.loader, spec.loader.exec_module

            def exec_module(module: Any) -> None:
                load(module)
                register()

            loader.exec_module = exec_module
        return spec


def register() -> None:
    """Register `surveyor/Tree-v0` and the others now."""
    importlib.import_module("surveyor.envs.gymnasium")


def register_when_imported() -> None:
    """Register the ids now if Gymnasium is loaded, or else when it is."""
    if "gymnasium" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _AfterGymnasium())
