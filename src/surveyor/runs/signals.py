"""Handlers of SIGINT and SIGTERM for a limited time."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def handle_signals(handler: Callable[[int, Any], Any]) -> Iterator[None]:
    """Call `handler` at SIGINT and SIGTERM, in place of the handlers installed before."""
    main = threading.current_thread() is threading.main_thread()  # others cannot set handlers
    numbers = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
