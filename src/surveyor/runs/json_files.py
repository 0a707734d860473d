"""Small JSON files of a run, which a kill or a full disk may have damaged."""

import json
from pathlib import Path
from typing import Any

from surveyor.runs import checkpoint

DAMAGED = FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, RecursionError
"""Errors of reading a missing or invalid JSON file; unreachable storage raises others."""

Record = dict[str, Any]


def read(path: Path) -> Record | None:
    """Return the object in a JSON file, or None if it is missing or damaged."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except DAMAGED:
        return None
    return content if isinstance(content, dict) else None


def parsed(lines: list[bytes], skip: bool) -> list[Record]:
    """Return the objects in lines of JSON before the first damaged line, or `skip` it."""
    records = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            records.append(record)
        elif not skip:
            break
    return records


def reason(path: Path) -> str | None:
    """Return the reason in a JSON file, or None if there is no file."""
    if not path.exists():
        return None
    found = (read(path) or {}).get("reason")
    return found if isinstance(found, str) else f"{path.name} is damaged."


def write(path: Path, content: Record) -> None:
    """Write an object in one step, so that readers never see a part of it."""
    checkpoint.write_atomically(path, json.dumps(content, indent=2).encode() + b"\n")
