"""Warnings about averages of differently made results, and counts of doubtful verdicts; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from mind2web2.runs.reader import QUOTE_MATCHES, Reservation, ResultFacts
from mind2web2.runs.score_matrix import ScoredAnswer
from mind2web2.utils.text import name_list, natural_key

UNKNOWN_JUDGE = "unknown"
_MAX_KINDS_SHOWN = 6


def judge_models(answers: Iterable[ScoredAnswer]) -> dict[str, int]:
    """Return how many answers each model has judged."""
    return dict(sorted(Counter(answer.judge_model or UNKNOWN_JUDGE for answer in answers).items()))


def judges_of(answers: Iterable[ScoredAnswer]) -> set[str]:
    """Return the judges of answers, with their parameters."""
    return {answer.facts.judge or UNKNOWN_JUDGE for answer in answers}


def mixture_warnings(answers: Sequence[ScoredAnswer], done: str = "averaged") -> Iterator[str]:
    """Yield one line for each way in which scored answers were judged differently."""
    models = judge_models(answers)
    judges = judges_of(answers)
    servers = {answer.facts.server for answer in answers} - {None}
    if len(models) > 1:
        listed = _counted(models)
        yield f"scores of different judge models are {done}: {listed}; judge all answers with one model"
    elif len(judges) > 1 or len(servers) > 1:
        yield (
            f"scores of one judge model with different parameters or servers are {done}: "
            f"{_counted(Counter(map(_judge_in_words, answers)))}; judge all answers alike"
        )
    served = Counter(name for answer in answers for name in answer.facts.served)
    if len(served) > 1 and len(models) == 1:
        yield f"the judge was served in different versions, as its server reports: {_counted(served)}"
    yield from _version_warnings(answers, done)
    yield from script_warnings(answers)


def _version_warnings(answers: Sequence[ScoredAnswer], done: str) -> Iterator[str]:
    versions: dict[str, Counter[str]] = defaultdict(Counter)
    for answer in answers:
        for name, version in answer.facts.versions.items():
            versions[name][version] += 1
    mixed = {name: found for name, found in versions.items() if len(found) > 1}
    if mixed:
        # Of this package first: it decides how a judge is asked.
        names = sorted(mixed, key=lambda name: (name != "mind2web2", name))
        listed = "; ".join(f"{name} {_counted(mixed[name])}" for name in names)
        yield f"results of different versions are {done}: {listed}"


def script_warnings(answers: Sequence[ScoredAnswer]) -> Iterator[str]:
    """Yield a line that names the tasks whose answers were judged by different scripts, if any."""
    scripts: dict[str, set[str]] = defaultdict(set)
    for answer in answers:
        if answer.facts.script_sha256 is not None:
            scripts[answer.task_id].add(answer.facts.script_sha256)
    mixed = [task_id for task_id, found in scripts.items() if len(found) > 1]
    if mixed:
        yield f"answers to one task were judged by different versions of its script: {name_list(mixed)}"


def _judge_in_words(answer: ScoredAnswer) -> str:
    server = answer.facts.server
    return f"{answer.facts.judge or UNKNOWN_JUDGE}{'' if server is None else f' at {server}'}"


def _counted(counts: Mapping[str, int]) -> str:
    """Return names with their counts in natural order, the most frequent alone where there are many."""
    frequent = sorted(counts, key=lambda name: (-counts[name], natural_key(name)))[:_MAX_KINDS_SHOWN]
    listed = ", ".join(
        f"{name} ({counts[name]} answer{'s' * (counts[name] != 1)})"
        for name in sorted(frequent, key=natural_key)
    )
    hidden = len(counts) - len(frequent)
    return f"{listed} and {hidden} more" if hidden else listed


RESERVATIONS: tuple[Reservation, ...] = get_args(Reservation)


@dataclass(slots=True)
class ClaimCounts:
    """Counts of the claims of an agent or a task.

    Args:
        claims: all claims that were judged or had no available page.
        reservations: claims with each reservation; one claim may have several.
        voted: claims with several votes.
        split: claims whose votes differ.
        quotes: quoted passages that were found, approximately found, and not found.
    """

    claims: int = 0
    reservations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESERVATIONS, 0))
    voted: int = 0
    split: int = 0
    quotes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(QUOTE_MATCHES, 0))

    def add(self, answer: ScoredAnswer) -> None:
        """Add an answer's claims."""
        for claim in answer.facts.claims:
            self.claims += 1
            self.voted += claim.is_voted
            self.split += claim.is_split
            for reservation in claim.reservations:
                self.reservations[reservation] += 1
            for match in claim.quotes:
                self.quotes[match] += 1


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """The verdicts behind an agent's scores; answers are named ``task/answer``.

    Args:
        extractions: extractions with each reservation.
        in_doubt: answers that the next run judges again.
        flagged: answers whose text tries to instruct the judge.
        treeless: answers whose scores have no rubric tree.
        off_tree: answers whose scores differ from their rubric trees.
        unexplained: other answers whose results have no evidence, so that their claims are unknown.
    """

    total: ClaimCounts
    tasks: Mapping[str, ClaimCounts]
    extractions: Mapping[str, int]
    in_doubt: tuple[str, ...]
    flagged: tuple[str, ...]
    treeless: tuple[str, ...]
    off_tree: tuple[str, ...]
    unexplained: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Return them as written to the agent's ``summary.json``."""
        return {
            **asdict(self.total),
            "tasks": {task_id: asdict(counts) for task_id, counts in self.tasks.items()},
            "extractions": dict(self.extractions),
            "in_doubt": list(self.in_doubt),
            "flagged_answers": list(self.flagged),
            "treeless": list(self.treeless),
            "off_tree": list(self.off_tree),
            "unexplained": list(self.unexplained),
        }


def verdict_counts(answers: Iterable[ScoredAnswer]) -> VerdictCounts:
    """Count the verdicts behind the scores of these answers."""
    total = ClaimCounts()
    tasks: dict[str, ClaimCounts] = {}
    extractions: dict[str, int] = dict.fromkeys(RESERVATIONS, 0)
    by_name: dict[str, ResultFacts] = {}
    for answer in answers:
        by_name[f"{answer.task_id}/{answer.answer_name}"] = answer.facts
        total.add(answer)
        tasks.setdefault(answer.task_id, ClaimCounts()).add(answer)
        for reservation in (kind for extraction in answer.facts.extractions for kind in extraction):
            extractions[reservation] += 1

    def names(applies: Callable[[ResultFacts], bool]) -> tuple[str, ...]:
        return tuple(name for name, facts in by_name.items() if applies(facts))

    return VerdictCounts(
        total,
        tasks,
        extractions,
        in_doubt=names(lambda facts: facts.in_doubt),
        flagged=names(lambda facts: facts.is_flagged),
        treeless=names(lambda facts: facts.is_treeless),
        off_tree=names(lambda facts: facts.is_off_tree),
        unexplained=names(lambda facts: not facts.is_explained and not facts.is_treeless),
    )
