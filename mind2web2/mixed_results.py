"""What is averaged although it was made in different ways: judges, versions, scripts; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mind2web2.score_grid import ScoredAnswer
from mind2web2.utils.names import name_list, natural_key

UNKNOWN_JUDGE = "unknown"
_MAX_KINDS_SHOWN = 6


def judge_models(answers: Iterable[ScoredAnswer]) -> dict[str, int]:
    """Return how many answers each model has judged."""
    return dict(sorted(Counter(answer.judge_model or UNKNOWN_JUDGE for answer in answers).items()))


def mixture_warnings(answers: Sequence[ScoredAnswer], done: str = "averaged") -> Iterator[str]:
    """Yield one line for each way in which scored answers were judged differently.

    Args:
        done: what is done with their scores.
    """
    models = judge_models(answers)
    judges = {answer.facts.judge for answer in answers}
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
    yield from _script_warnings(answers)


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


def _script_warnings(answers: Sequence[ScoredAnswer]) -> Iterator[str]:
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
    listed = ", ".join(f"{name} ({counts[name]} answers)" for name in sorted(frequent, key=natural_key))
    hidden = len(counts) - len(frequent)
    return f"{listed} and {hidden} more" if hidden else listed
