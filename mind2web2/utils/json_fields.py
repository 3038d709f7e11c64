"""Fields of JSON files, whatever other programs wrote there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A JSON object that is passed on as it is, or of another program: its values may be anything.
JsonObject = Mapping[str, Any]


def mapping(value: object) -> JsonObject:
    """Return a field that should be an object, empty where it is none."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[JsonObject]:
    """Return the objects of a field that should be a list of them."""
    return [item for item in items(value) if isinstance(item, dict)]


def items(value: object) -> list[Any]:
    """Return a field that should be a list, empty where it is none."""
    return value if isinstance(value, list) else []
