"""The user's own price of a model. Nothing here loads much: ``--help`` needs it."""

from __future__ import annotations

from typing import NamedTuple


class OwnPrice(NamedTuple):
    """The user's own price of a model in dollars per million tokens.

    ``cached_usd`` defaults to input's.
    """

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
