"""Code of users: entry points of installed packages, and modules that `--import` names.

Nothing here is imported because a file says so: packages are installed and `--import` is given.
"""

import importlib
import importlib.metadata
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from surveyor.errors import SurveyorError

imported: list[str] = []
"""Modules that `import_module` has imported, for worker processes to import as well."""


def load_entry_points(group: str, add: Callable[[Any], None]) -> None:
    """Pass every object of an entry point group to `add`; warn of those that cannot be used."""
    for point in importlib.metadata.entry_points(group=group):
        try:
            add(point.load())
        except Exception as error:  # a plugin can raise anything, and must not break the rest
            package = point.dist.name if point.dist is not None else point.module
            reason = str(error) if isinstance(error, SurveyorError) else describe(error)
            warnings.warn(
                f"The entry point '{point.name}' in {group} of the package {package} "
                f"cannot be used: {reason.rstrip('.')}.",
                stacklevel=2,
            )


def import_module(name: str) -> ModuleType:
    """Import a module by its name or the path of its .py file, and remember it in `imported`."""
    path = Path(name).resolve() if name.endswith(".py") else None
    if path is not None:
        if not path.is_file():
            raise SurveyorError(f"There is no file '{name}' to import.")
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))  # as Python does for a script
    target = name if path is None else path.stem
    try:
        module = importlib.import_module(target)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == target:
            raise SurveyorError(
                f"There is no module '{name}' to import; --import takes the name of a module or "
                "the path of a .py file."
            ) from None
        raise SurveyorError(f"'{name}' cannot be imported: {describe(error)}.") from None
    if path is not None and Path(module.__file__ or "").resolve() != path:
        raise SurveyorError(
            f"'{name}' cannot be imported: there is another module '{target}'; rename the file."
        )
    said = name if path is None else str(path)
    if said not in imported:
        imported.append(said)
    return module


def describe(error: BaseException) -> str:
    """Return the type, message and place of an exception, without a full stop."""
    frames = traceback.extract_tb(error.__traceback__)
    last = (getattr(error, "filename", None), getattr(error, "lineno", None))  # a syntax error
    if not isinstance(error, SyntaxError):
        last = (frames[-1].filename, frames[-1].lineno) if frames else (None, None)
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    place = f" ({Path(last[0]).name}, line {last[1]})" if last[0] else ""
    return f"{type(error).__name__}: {message.rstrip('.')}{place}"


def source_of(kind: type) -> str:
    """Return a class as `module:Class`, or `file.py:Class` if a script defines it."""
    module = kind.__module__
    if module in ("__main__", "__mp_main__"):
        main: Any = sys.modules.get("__main__")
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec is not None else Path(file).name if file else "__main__"
    return f"{module}:{kind.__qualname__}"
