"""The figures of checked reports, each with an interval; ``docs/check.md`` defines them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from mind2web2.plugin import Estimate, UsageError
from mind2web2_check.verdicts import StatementVerdict

FigureName = Literal[
    "precision",
    "coverage",
    "contradicted",
    "unavailable",
    "effective_citations",
    "fact_accuracy_paper",
    "fact_accuracy_code",
]


class Figure(BaseModel):
    """A share or a count.

    Args:
        low, high: the bounds of the 95% interval of a share.
        of: how many things the share is of.
    """

    value: float
    low: float | None = None
    high: float | None = None
    of: int | None = None

    def __str__(self) -> str:
        """Return ``60% (44% to 75%) of 40`` for a share, and the number for a count."""
        if self.of is None:
            return f"{self.value:g}"
        return f"{Estimate(self.value, self.low, self.high)} of {self.of}"


Figures = Mapping[FigureName, Figure | None]


def _share(hits: int, of: int) -> Figure | None:
    if not of:
        return None
    share = Estimate.of_share(hits, of)
    return Figure(value=hits / of, low=share.low, high=share.high, of=of)


def figures_of(
    statements: Sequence[StatementVerdict],
) -> dict[FigureName, Figure | None]:
    """Return the figures of a report; ``None`` where there is nothing to take a share of."""
    checkable = [statement for statement in statements if statement.checkable]
    claims = Counter(claim.verdict for each in checkable for claim in each.claims)
    pairs = Counter(source.verdict for each in checkable for source in each.sources)
    cited = claims.total() - claims["no source given"]
    judged = cited - claims["page unavailable"] - claims["not judged"]
    fact = fact_pairs(statements)
    read = [verdict for verdict in fact.values() if verdict is not None]
    return {
        "precision": _share(claims["supported"], judged),
        "coverage": _share(cited, claims.total()),
        "contradicted": _share(claims["contradicted"], judged),
        "unavailable": _share(pairs["page unavailable"], pairs.total()),
        "effective_citations": Figure(value=float(sum(read))),
        "fact_accuracy_paper": _share(sum(read), len(fact)) or Figure(value=0.0),
        "fact_accuracy_code": _share(sum(read), len(read)),
    }


def fact_pairs(
    statements: Iterable[StatementVerdict],
) -> Mapping[tuple[int, str], bool | None]:
    """Return FACT's pairs of statement and address.

    The value says whether the page supports the statement; it is ``None`` if the page was not read.

    As in FACT, a page supports a statement if it supports it entirely or in part, and an address
    counts without the passage that it names.
    """
    pairs: dict[tuple[int, str], bool | None] = {}
    for statement in statements:
        for source in statement.sources:
            key = statement.start, source.source.partition("#:~:text=")[0]
            is_read = source.verdict not in ("page unavailable", "not judged")
            is_held = source.verdict in ("supported", "qualified")
            pairs.setdefault(key, None)
            if is_read:
                pairs[key] = pairs[key] or is_held
    return pairs


_BOUNDED: tuple[FigureName, ...] = (
    "precision",
    "coverage",
    "fact_accuracy_paper",
    "fact_accuracy_code",
)


@dataclass(frozen=True)
class Bound:
    """A bound of ``--fail_under``: the figure must not be below it."""

    name: FigureName
    least: float

    @classmethod
    def read(cls, text: str) -> Bound:
        """Read ``precision=.9``.

        Raises:
            UsageError: it has another form, or names no figure.
        """
        name, _, value = text.partition("=")
        if name not in _BOUNDED:
            raise UsageError(f"--fail_under {text}: name one of {', '.join(_BOUNDED)}")
        if not re.fullmatch(r"0|1|[01]?\.\d+", value) or float(value) > 1:
            raise UsageError(f"--fail_under {text}: write a share from 0 to 1, as precision=.9")
        return cls(name, float(value))

    def failure(self, figures: Figures) -> str | None:
        """Return why the figures do not reach the bound, ``None`` if they do."""
        figure = figures.get(self.name)
        if figure is None:
            return f"{self.name} cannot be computed: no claim was judged by a page"
        if figure.value < self.least:
            return f"{self.name} is {figure.value:.1%}, below {self.least:.1%}"
        return None
