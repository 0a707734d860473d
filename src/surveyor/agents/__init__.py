"""Agents by name, without importing anything heavy; `surveyor.agents.base` has their interface."""

from surveyor.agents.registry import (
    DEFAULT,
    REGISTRY,
    Entry,
    entry_of,
    find,
    make,
    name_of,
    preset,
    register,
)

__all__ = [
    "DEFAULT",
    "REGISTRY",
    "Entry",
    "entry_of",
    "find",
    "make",
    "name_of",
    "preset",
    "register",
]
