"""What two judges would have decided together, and at what price, from the results of each alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from mind2web2.judge.cascade import JudgeCascade
from mind2web2.rubric.verdicts import (
    FIRST_VOTES,
    DoubtLevel,
    Evidence,
    PageShown,
    Vote,
    first_judge_doubts,
    is_majority,
)
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.economy import is_score_changed
from mind2web2.runs.result_file import ResultFile
from mind2web2.runs.results import loaded_results
from mind2web2.statistics.agreement import share_by_task
from mind2web2.statistics.paired import Estimate

Rule = TypeVar("Rule")
# The cheap judge decides everything.
ALONE: Literal["alone"] = "alone"
SharedRule = DoubtLevel | Literal["alone"]
# From the most cautious rule to the boldest, the order in which agreement is tested.
SHARED_RULES: tuple[SharedRule, ...] = ("gates", "signs", "split", ALONE)


@dataclass(frozen=True)
class JudgedTwice:
    """One answer's results by the cheap and by the strong judge, each alone."""

    task_id: str
    cheap: ResultFile
    strong: ResultFile


@dataclass(frozen=True)
class SharedWork:
    """One answer judged by two judges together.

    Args:
        strong_votes: votes of the strong judge, of its own ``all_votes``.
        leaves: leaves that both judges voted on alone, so that their verdict is known.
        changed: those of them with another verdict than the strong judge's.
        unknown: leaves of the strong judge with no known verdict: the cheap one was not asked the same.
        cost_usd: of all requests, and ``strong_usd`` if the strong judge does all; ``None`` if unknown.
    """

    strong_votes: int
    all_votes: int
    leaves: int
    changed: int
    unknown: int
    is_score_changed: bool
    cost_usd: float | None
    strong_usd: float | None


@dataclass(frozen=True)
class SharedFigures:
    """What a rule would have cost and changed, against the strong judge alone, with intervals by task.

    Args:
        strong: votes of the strong judge, as a share of those that it casts alone.
        price: as a share of the strong judge's alone; no value without both prices.
        verdicts: of the verdicts, how many would differ.
        scores: of the answers' scores, how many would differ, or might.
    """

    rule: SharedRule
    strong: Estimate
    price: Estimate
    verdicts: Estimate
    scores: Estimate


@dataclass(frozen=True)
class SharedEconomy:
    """The stored judgments of two judges on the same answers, by all rules.

    Args:
        lacking: answers that only one of both judged, or each on other premises.
        unknown: leaves of the strong judge that the cheap one was not asked.
        chosen: the boldest rule that has the wanted agreement for certain, ``None`` if no rule has.
    """

    answers: int
    tasks: int
    claims: int
    unknown: int
    lacking: int
    rules: Sequence[SharedFigures]
    agreement: float | None = None
    chosen: SharedRule | None = None


@dataclass
class _Found:
    cheap: ResultFile | None = None
    strong: ResultFile | None = None


def shared_economy(
    roots: Sequence[Path],
    agent_name: str,
    cascade: JudgeCascade,
    task_ids: Iterable[str] = (),
    agreement: float | None = None,
) -> SharedEconomy:
    """Return the figures of an agent's answers that both judges judged alone, in any of these roots."""
    wanted = set(task_ids)
    found: dict[tuple[str, str], _Found] = defaultdict(_Found)
    for root in roots:
        for folder in sorted((root / agent_name).glob("*/*/results")):
            task_id, name = folder.parts[-3:-1]
            if not wanted or task_id in wanted:
                _note(found[task_id, name], folder, cascade)
    pairs = [
        JudgedTwice(task_id, each.cheap, each.strong)
        for (task_id, _), each in sorted(found.items())
        if each.cheap is not None
        and each.strong is not None
        and _are_comparable(each.cheap, each.strong)
    ]
    return shared_economy_of(pairs, len(found) - len(pairs), agreement)


def _note(found: _Found, folder: Path, cascade: JudgeCascade) -> None:
    """Keep the newest result by each judge."""
    for loaded in loaded_results(folder):
        result = loaded.content
        made_from = result.provenance
        if made_from is None or result.final_score is None:
            continue
        judge = made_from.judge
        if judge.first_model is not None or judge.votes != "always":
            continue
        if judge.model == cascade.first and found.cheap is None:
            found.cheap = result
        if judge.model == cascade.strong and found.strong is None:
            found.strong = result


def _are_comparable(cheap: ResultFile, strong: ResultFile) -> bool:
    one, other = cheap.provenance, strong.provenance
    if one is None or other is None:
        return False
    return one.premises == other.premises


def shared_economy_of(
    pairs: Sequence[JudgedTwice], lacking: int = 0, agreement: float | None = None
) -> SharedEconomy:
    """Return the figures of answers that two judges judged.

    Args:
        agreement: the share of the strong judge's verdicts that ``boldest_rule`` is to keep.
    """
    rules: list[SharedFigures] = []
    works: list[SharedWork] = []
    for rule in SHARED_RULES:
        by_task: dict[str, list[SharedWork]] = defaultdict(list)
        for pair in pairs:
            by_task[pair.task_id].append(shared_work(pair, rule))
        works = [work for own in by_task.values() for work in own]
        rules.append(_figures(rule, by_task))
    chosen = None
    if agreement is not None:
        other_verdicts = {figures.rule: figures.verdicts for figures in rules}
        chosen = boldest_rule(other_verdicts, agreement)
    return SharedEconomy(
        answers=len(pairs),
        tasks=len({pair.task_id for pair in pairs}),
        claims=sum(work.leaves for work in works),
        unknown=sum(work.unknown for work in works),
        lacking=lacking,
        rules=rules,
        agreement=agreement,
        chosen=chosen,
    )


def boldest_rule(
    other_verdicts: Mapping[SharedRule, Estimate], agreement: float
) -> SharedRule | None:
    """Return the boldest rule that keeps a share of the strong judge's verdicts for certain, if one does."""
    return boldest([(rule, other_verdicts[rule]) for rule in SHARED_RULES], agreement)


def boldest(ordered: Sequence[tuple[Rule, Estimate]], agreement: float) -> Rule | None:
    """Return the boldest of rules that keeps a share of the strong judge's verdicts for certain, if one does.

    Rules are tested from the most cautious to the boldest, and the first that may miss the share ends the
    test (fixed-sequence testing): the chance to return a rule that misses it does not grow with their number.

    Args:
        ordered: from the most cautious on, with the share of verdicts that each changes; the upper end of
            its interval is the test, which errs in 2.5%.
    """
    chosen: Rule | None = None
    for rule, other in ordered:
        high = other.high
        if high is None or 1 - high < agreement:
            return chosen
        chosen = rule
    return chosen


def _figures(
    rule: SharedRule, by_task: Mapping[str, Sequence[SharedWork]]
) -> SharedFigures:
    tasks = list(by_task.values())
    priced = [
        (
            sum(work.cost_usd or 0 for work in own),
            sum(work.strong_usd or 0 for work in own),
        )
        for own in tasks
    ]
    is_priced = all(
        work.cost_usd is not None and work.strong_usd for own in tasks for work in own
    )
    price = None
    if is_priced and tasks:
        total_usd = sum(cost for cost, _ in priced)
        strong_usd = sum(full for _, full in priced)
        price = total_usd / strong_usd
    return SharedFigures(
        rule=rule,
        strong=share_by_task(
            [
                (
                    sum(work.strong_votes for work in own),
                    sum(work.all_votes for work in own),
                )
                for own in tasks
            ]
        ),
        price=Estimate(price),
        verdicts=share_by_task(
            [
                (sum(work.changed for work in own), sum(work.leaves for work in own))
                for own in tasks
            ]
        ),
        scores=share_by_task(
            [(sum(work.is_score_changed for work in own), len(own)) for own in tasks]
        ),
    )


@dataclass
class _Tally:
    strong_votes: int = 0
    cheap_votes: int = 0
    all_votes: int = 0
    leaves: int = 0
    unknown: int = 0
    flipped: dict[int, bool] = field(default_factory=dict)


def shared_work(pair: JudgedTwice, rule: SharedRule) -> SharedWork:
    """Return what both judges would have done together by a rule."""
    by_cheap = {
        (leaf.id, leaf.evidence.claim): leaf.evidence
        for leaf in _voted(pair.cheap)
        if leaf.evidence is not None
    }
    tally = _Tally()
    for leaf in _voted(pair.strong):
        if leaf.evidence is not None:
            cheap = by_cheap.get((leaf.id, leaf.evidence.claim))
            _add(tally, leaf, leaf.evidence, cheap, rule)
    is_changed = any(
        is_score_changed(tree, tally.flipped) for tree in pair.strong.trees
    )
    cost_usd, strong_usd = _costs(pair, tally, rule)
    return SharedWork(
        strong_votes=tally.strong_votes,
        all_votes=tally.all_votes,
        leaves=tally.leaves,
        changed=len(tally.flipped),
        unknown=tally.unknown,
        is_score_changed=is_changed,
        cost_usd=cost_usd,
        strong_usd=strong_usd,
    )


def _voted(result: ResultFile) -> list[WrittenNode]:
    return [
        leaf
        for leaf in result.leaves()
        if leaf.evidence is not None
        and leaf.evidence.decided_by == "judge"
        and _votes_by_source(leaf.evidence)
    ]


def _votes_by_source(
    evidence: Evidence,
) -> dict[str, tuple[PageShown | None, Sequence[Vote]]]:
    """Return the votes on each page by its address, or those on the answer."""
    found: dict[str, tuple[PageShown | None, Sequence[Vote]]] = {}
    if evidence.votes:
        found[""] = (None, evidence.votes)
    for check in evidence.pages:
        if check.votes:
            found[check.url] = (check.page, check.votes)
    return found


def _add(
    tally: _Tally,
    leaf: WrittenNode,
    strong: Evidence,
    cheap: Evidence | None,
    rule: SharedRule,
) -> None:
    """Add a leaf that the strong judge voted on."""
    own = _votes_by_source(strong)
    votes = sum(len(each) for _, each in own.values())
    tally.all_votes += votes
    if rule == "gates" and leaf.critical:
        tally.strong_votes += votes
        tally.leaves += 1
        return
    both = None
    if cheap is not None:
        both = _by_both(own, _votes_by_source(cheap), rule)
    if both is None:
        tally.unknown += 1
        tally.strong_votes += votes
        return
    tally.leaves += 1
    tally.strong_votes += both.strong_votes
    tally.cheap_votes += both.cheap_votes
    if both.passes is not (leaf.verdict.status == "passed"):
        tally.flipped[id(leaf)] = both.passes


class _ByBoth(NamedTuple):
    """The verdict of both judges together, and their votes."""

    passes: bool
    cheap_votes: int
    strong_votes: int


def _by_both(
    strong: Mapping[str, tuple[PageShown | None, Sequence[Vote]]],
    cheap: Mapping[str, tuple[PageShown | None, Sequence[Vote]]],
    rule: SharedRule,
) -> _ByBoth | None:
    """Return what both do together, ``None`` where a vote is not known."""
    cheap_votes = strong_votes = 0
    for source in {**cheap, **strong}:
        if source not in cheap:
            return None
        page, votes = cheap[source]
        if rule == "split" and len(votes) < FIRST_VOTES:
            # The script asks for one vote, and both together would have had a second.
            return None
        first = votes if rule == ALONE else votes[:FIRST_VOTES]
        cheap_votes += len(first)
        deciding = first
        if rule != ALONE and first_judge_doubts(first, page, rule):
            if source not in strong:
                return None
            deciding = strong[source][1]
            strong_votes += len(deciding)
        if is_majority(deciding):
            return _ByBoth(True, cheap_votes, strong_votes)
    return _ByBoth(False, cheap_votes, strong_votes)


def _costs(
    pair: JudgedTwice, tally: _Tally, rule: SharedRule
) -> tuple[float | None, float | None]:
    """Return the dollars of both together, and of the strong judge alone, at each one's mean price."""
    cheap, strong = pair.cheap.judge_usage, pair.strong.judge_usage
    if cheap is None or strong is None or not cheap.judgments or not strong.judgments:
        return None, None
    if cheap.cost_usd is None or strong.cost_usd is None:
        return None, None
    if rule == ALONE:
        return cheap.cost_usd, strong.cost_usd
    # Extractions, which the strong judge makes in any case.
    others = max(strong.judgments - tally.all_votes, 0)
    of_strong = (others + tally.strong_votes) * strong.cost_usd / strong.judgments
    of_cheap = tally.cheap_votes * cheap.cost_usd / cheap.judgments
    return of_strong + of_cheap, strong.cost_usd
