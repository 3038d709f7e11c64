"""One sentence that says how a score was made, to copy into a paper; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from mind2web2.analysis.corrections import Correction, NoCorrection
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.results.served_names import served_names
from mind2web2.statistics.uncertainty import LEVEL, Interval
from mind2web2.utils.text import counted

_DIGEST_CHARS = 12


def paper_sentence(
    summary: AgentSummary,
    answers: Sequence[ScoredAnswer],
    results: Collection[ResultFile],
    score: float,
    interval: Interval | None,
    correction: Correction | NoCorrection | None,
) -> str:
    """Return the sentence.

    Args:
        answers: those with a score.
        results: of these answers.
        score: partial completion as it is shown, with its interval for tasks at large.
    """
    unscored = len(summary.missing)
    treatment = "counted as 0" if summary.missing_counted_as_zero else "left out"
    missing = f"{unscored} without a score {treatment}" if unscored else "none without a score"
    tasks = counted(summary.num_tasks, "task")
    judged = counted(len(answers), "answer")
    shown = f"{score:.4f}" + _within(interval, "tasks at large")
    return (
        f"{summary.agent_name} reached a partial completion of {shown} on {tasks} "
        f"({judged}, {missing}), judged by {_judges(answers)} ({_servers(results)}) with "
        f"Mind2Web2 {_versions(answers)}, prompts {_prompts(results)}, {_votes(results)}; "
        f"{_corrected(correction)}."
    )


def _within(interval: Interval | None, of: str) -> str:
    return (
        ""
        if interval is None
        else f" ({LEVEL:.0%} interval for {of} {interval.low:.4f} to {interval.high:.4f})"
    )


def _corrected(correction: Correction | NoCorrection | None) -> str:
    if correction is None or isinstance(correction, NoCorrection):
        return "not corrected for the judge's errors"
    these = _within(correction.these_tasks, "these tasks")
    if correction.value is None:
        return "not corrected for the judge's errors"
    return f"corrected by {correction.by}: {correction.value:.4f}{these}"


def _judges(answers: Iterable[ScoredAnswer]) -> str:
    """Return each judge once, the most frequent first, with the names under which it was served."""
    by_judge: dict[str, list[ScoredAnswer]] = defaultdict(list)
    for answer in answers:
        if answer.reason is None:
            by_judge[_judge(answer)].append(answer)
    in_order = sorted(by_judge, key=lambda judge: -len(by_judge[judge]))
    named = [f"{judge}{_served(by_judge[judge])}" for judge in in_order]
    return ", ".join(named) or "unknown"


def _judge(answer: ScoredAnswer) -> str:
    judge = answer.facts.judge or "an unknown judge"
    first = answer.facts.first
    if first is None:
        return judge
    alone = judge.removesuffix(f" {first.parameters}")
    return f"{alone} with {first.model} first ({first.doubt})"


def _served(answers: Iterable[ScoredAnswer]) -> str:
    served = served_names(answers)
    names = ", ".join(sorted(served.judge | served.either))
    parts = [names] if names else []
    if served.first:
        parts.append(f"the first as {', '.join(sorted(served.first))}")
    return f" (served as {'; '.join(parts)})" if parts else ""


def _servers(results: Iterable[ResultFile]) -> str:
    judges = [one.provenance.judge for one in results if one.provenance is not None]
    return f"provider {_listed(judge.provider for judge in judges)}"


def _versions(answers: Iterable[ScoredAnswer]) -> str:
    return _listed(answer.facts.own_version for answer in answers)


def _prompts(results: Iterable[ResultFile]) -> str:
    digests = [one.provenance.settings_sha256 for one in results if one.provenance is not None]
    return _listed(digest[:_DIGEST_CHARS] for digest in digests)


def _votes(results: Iterable[ResultFile]) -> str:
    results = list(results)
    trials = Counter(
        evidence.num_trials
        for result in results
        for leaf in result.leaves()
        if (evidence := leaf.evidence) is not None
        and evidence.decided_by == "judge"
        and evidence.num_trials
    )
    if not trials:
        return "votes not recorded"
    most = [str(number) for number, _ in trials.most_common()]
    on_demand = any(
        one.provenance is not None and one.provenance.judge.votes == "doubt" for one in results
    )
    demand = ", a second and third only where the first was in doubt" * on_demand
    if most == ["1"]:
        return "one vote a claim"
    return f"majority of at most {' or '.join(most)} votes a claim{demand}"


def _listed(names: Iterable[str]) -> str:
    """Return names, the most frequent first, each once."""
    counts = Counter(name for name in names if name)
    return ", ".join(name for name, _ in counts.most_common()) or "unknown"
