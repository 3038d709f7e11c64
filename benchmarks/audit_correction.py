"""Coverage of the audit's corrected score by simulations with known truth, beside the judge's own score."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from measuring import title

from mind2web2.runs.score_matrix import ScoredAnswer
from mind2web2.statistics.paired import Estimate
from mind2web2.viewer.audit import Label, corrected_score, judged_leaves, sample
from mind2web2.viewer.catalog import AnswerKey

SIMULATIONS = 400
ANSWERS = 480
RUNS = 3
LEAVES = 8
LABELS = 600
# The judge's errors on true and on false claims.
WRONG_FAILURES, WRONG_PASSES = 0.05, 0.2
# Of an answer whose leaves pass with a chance that is uniform between 0 and 1: the mean of its square.
TRUE_SCORE = 1 / 3


@dataclass(frozen=True)
class _Result:
    content: Mapping[str, Any]


class _Results:
    """An agent's results in memory, as ``Catalog`` gives them."""

    def __init__(self, results: Mapping[AnswerKey, Mapping[str, Any]]) -> None:
        self._results = results

    def answers(self, _agent: str) -> list[ScoredAnswer]:
        """Return the answers with their scores."""
        return [
            ScoredAnswer(key.task, f"{key.answer}.md", content["final_score"])
            for key, content in self._results.items()
        ]

    def result(self, key: AnswerKey) -> _Result:
        """Return an answer's result."""
        return _Result(self._results[key])


def leaf(number: int, passed: bool) -> dict[str, Any]:
    """Return a leaf as two votes decided it; the first one is critical."""
    votes = [{"trial": trial, "supported": passed, "reasoning": ""} for trial in (1, 2)]
    status = "passed" if passed else "failed"
    fields = {"id": f"leaf_{number}", "desc": "", "critical": number == 0, "strategy": "parallel"}
    evidence = {"decided_by": "judge", "claim": "c", "num_trials": 3, "votes": votes}
    return fields | {"score": float(passed), "status": status, "children": [], "evidence": evidence}


def score(verdicts: Sequence[bool]) -> float:
    """Return the score of an answer by its leaves."""
    return fmean(verdicts[1:]) if verdicts[0] else 0.0


def simulated(seed: int) -> tuple[bool, bool, float, float]:
    """Return whether both intervals cover the truth, and the errors of both scores."""
    draws = random.Random(seed)
    results, truth = {}, {}
    quality = 0.0
    for number in range(ANSWERS):
        key = AnswerKey("bot", f"task_{number // RUNS}", f"answer_{number % RUNS + 1}")
        # Runs of a task are alike: it is as difficult for each.
        quality = quality if number % RUNS else draws.random()
        real = [draws.random() < quality for _ in range(LEAVES)]
        judged = [own != (draws.random() < (WRONG_FAILURES if own else WRONG_PASSES)) for own in real]
        tree = {"id": "root", "desc": "", "critical": False, "strategy": "parallel", "score": score(judged)}
        children = [leaf(place, passed) for place, passed in enumerate(judged)]
        tree |= {"status": "partial", "children": children}
        results[key] = {"final_score": score(judged), "eval_breakdown": [{"verification_tree": tree}]}
        truth |= {(key, f"leaf_{place}"): own for place, own in enumerate(real)}
    # Any: it has of a catalog what the audit reads.
    catalog: Any = _Results(results)
    leaves = judged_leaves(catalog, "bot")
    labels = {
        drawn.name: Label(
            agent="bot",
            task=drawn.place.task,
            answer=drawn.place.answer,
            leaf=drawn.leaf,
            label="y" if truth[drawn.name] else "n",
            seen_sha256=drawn.seen_sha256,
            weight=drawn.weight,
            created="",
        )
        for drawn in sample(leaves, LABELS, seed)
    }
    found = corrected_score(catalog, "bot", leaves, labels)
    if found is None or found.corrected.value is None:
        raise ValueError("every answer has a score and labels")
    scores = [answer.score or 0.0 for answer in catalog.answers("bot")]
    raw = Estimate.around(found.raw, stdev(scores) / ANSWERS**0.5, (0.0, 1.0))
    return (
        _covers(found.corrected),
        _covers(raw),
        found.corrected.value - TRUE_SCORE,
        found.raw - TRUE_SCORE,
    )


def _covers(found: Estimate) -> bool:
    return found.low is not None and found.high is not None and found.low <= TRUE_SCORE <= found.high


def main() -> None:
    """Simulate and print."""
    title(f"{SIMULATIONS} audits with {LABELS} labels of {ANSWERS} answers with {LEAVES} leaves")
    covered, raw_covered, errors, raw_errors = zip(*map(simulated, range(SIMULATIONS)), strict=True)
    for name, hits, own in (("corrected", covered, errors), ("raw", raw_covered, raw_errors)):
        sys.stdout.write(
            f"  {name} score: truth covered {fmean(hits):.0%}, bias {fmean(own):+.4f} "
            f"(root mean square error {fmean(error**2 for error in own) ** 0.5:.4f})\n"
        )


if __name__ == "__main__":
    main()
