"""JSON texts, parsed fast, and their fields, whatever other programs wrote there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON text, in half the time that ``json`` takes.

    Raises:
        ValueError: it is not JSON, or not in UTF-8.
        RecursionError: it is too deep.
    """
    try:
        return from_json(content)
    except ValueError:
        # Half surrogates and depths that only ``json`` reads; its errors name line and column.
        return json.loads(content.decode())


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
