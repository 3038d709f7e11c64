"""How the questions of a run reach its judge, and what that means for their price and order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Delivery:
    """How questions reach a judge.

    Args:
        price_share: of the list price, less than 1 where the provider gives a discount.
        caution: the factor by which estimates of the cost may be wrong until the first replies.
        is_collected: many questions are collected and sent together, and their replies take hours.
    """

    price_share: float = 1.0
    caution: float = 20.0
    is_collected: bool = False


# One request for each question.
DIRECT = Delivery()
