"""The scores of a task as cells of a table."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from mind2web2.utils.names import natural_key
from mind2web2.utils.text import number


def score_cells(by_answer: Mapping[str, float | None]) -> tuple[str, str]:
    """Return a task's scores, each with its answer, and their mean."""
    listed = "  ".join(
        f"{name.removeprefix('answer_').removesuffix('.md')}: {number(by_answer[name])}"
        for name in sorted(by_answer, key=natural_key)
    )
    scores = [score for score in by_answer.values() if score is not None]
    mean = fmean(scores) if scores else None
    return listed or "none", number(mean)
