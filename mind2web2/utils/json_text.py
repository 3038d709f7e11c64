"""JSON texts, parsed fast.

Apart from the types of their fields, which commands load without this parser.
"""

from __future__ import annotations

import json
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
