"""Handlers of SIGINT and SIGTERM for a limited time."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def handle_signals(handler: Callable[[int, Any], Any]) -> Iterator[None]:
    """Call `handler` at SIGINT and SIGTERM, in place of the handlers installed before."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@contextlib.contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Turn SIGINT and SIGTERM into a flag, so that they never interrupt a write."""
    seen: list[int] = []
    handle = handle_signals(lambda number, _: seen.append(number))
    main = threading.current_thread() is threading.main_thread()  # others cannot set handlers
    with handle if main else contextlib.nullcontext():
        yield lambda: bool(seen)
