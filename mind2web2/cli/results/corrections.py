"""Raw and corrected scores side by side, for ``metrics`` and ``compare --corrected``."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.results.audit import add_audits_root, interval_text
from mind2web2.errors import UsageError

if TYPE_CHECKING:
    from mind2web2.runs.corrections import (
        CorrectedPair,
        Correction,
        CorrectionRoots,
        NoCorrection,
    )
    from mind2web2.statistics.paired import Estimate


def add_correction_roots(parser: argparse.ArgumentParser) -> None:
    """Add the folders of labels and of answers that were judged again."""
    add_audits_root(parser)
    parser.add_argument(
        "--rejudged_root",
        metavar="DIR",
        type=Path,
        default=Path("rejudged"),
        help="where samples by a strong judge are (default: rejudged/)",
    )


def correction_line(found: Correction | NoCorrection) -> str:
    """Return raw and corrected score in one line, or the reason why there is no corrected one."""
    from mind2web2.runs.corrections import NoCorrection

    if isinstance(found, NoCorrection):
        raw = f"Partial completion by the judge {found.raw:.4f}"
        return f"{raw}, not corrected by {found.by}: {found.reason}."
    value = (
        "no value better than the judge's"
        if found.value is None
        else f"{found.value:.4f}"
    )
    return (
        f"Partial completion by the judge {found.mean.raw:.4f}, corrected by {found.by}: {value}; 95% "
        f"interval for these tasks {interval_text(found.these_tasks)}, for tasks at large "
        f"{interval_text(found.tasks_at_large)}."
    )


def corrected_pairs(
    roots: CorrectionRoots, folders: Mapping[str, Path], tasks: Collection[str]
) -> list[tuple[str, CorrectedPair]]:
    """Return the corrected comparison of the first agent with each other one.

    Args:
        roots: of the command; each agent has results of its own folder.

    Raises:
        UsageError: an agent has neither labels nor a strong judge's sample that correct its score.
    """
    from mind2web2.runs.corrections import NoCorrection, corrected_pair, correction_of

    found = {}
    for name, folder in folders.items():
        one = correction_of(
            replace(roots, eval_results=folder.parent), folder.name, tasks
        )
        if one is None:
            raise UsageError(
                f"--corrected: {name} has no labels and no sample by a strong judge at these tasks; make "
                f"some with: mind2web2 view {folder.name} --audit YOUR_NAME, or mind2web2 rejudge "
                f"{folder.name} --judge_model STRONG --sample 60"
            )
        if isinstance(one, NoCorrection):
            raise UsageError(
                f"--corrected: {name} is not corrected by {one.by}: {one.reason}"
            )
        found[name] = one
    first, *others = found
    return [(name, corrected_pair(found[first], found[name])) for name in others]


def pair_lines(first: str, second: str, pair: CorrectedPair) -> Iterator[str]:
    """Yield the corrected comparison of two agents, one line each."""
    yield f"{first}: {correction_line(pair.first)}"
    yield f"{second}: {correction_line(pair.second)}"
    difference = pair.difference
    if difference.value is None:
        corrected = "no corrected value, as one of the two has none"
    else:
        corrected = f"corrected {difference.value:+.4f}"
    yield (
        f"Difference of {second} from {first} by the judge {difference.raw:+.4f}, {corrected}; 95% "
        f"interval for these tasks {interval_text(difference.these_tasks, '+.4f')}, for tasks at large "
        f"{interval_text(difference.tasks_at_large, '+.4f')}."
    )
    yield (
        f"Errors of the judge, {second} less {first}: passed wrongly {_rate(pair.wrong_passes)}, failed "
        f"wrongly {_rate(pair.wrong_failures)}{_bias(pair)}."
    )


def _bias(pair: CorrectedPair) -> str:
    rates = (pair.wrong_passes, pair.wrong_failures)
    is_biased = any(
        one.low is not None and one.high is not None and not one.low <= 0 <= one.high
        for one in rates
    )
    return "; the judge errs differently on the two agents" if is_biased else ""


def _rate(found: Estimate) -> str:
    if found.value is None:
        return "unknown"
    if found.low is None or found.high is None:
        return f"{found.value:+.1%}"
    return f"{found.value:+.1%} ({found.low:+.1%} to {found.high:+.1%})"
