"""One sentence that says how a score was made, to copy into a paper; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mind2web2.analysis.correction_record import CorrectionFigures, Ends
from mind2web2.analysis.score_matrix import judges_of
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ScoredAnswer, served_names
from mind2web2.statistics.uncertainty import LEVEL, Interval
from mind2web2.utils.text import counted, percent

_DIGEST_CHARS = 12


class Making:
    """How results were made, counted one after another."""

    def __init__(self) -> None:
        self.providers: Counter[str] = Counter()
        self.prompts: Counter[str] = Counter()
        self.trials: Counter[int] = Counter()

    def add(self, result: ResultFile) -> None:
        """Count a result."""
        made_from = result.provenance
        if made_from is not None:
            self.providers[made_from.judge.provider] += 1
            self.prompts[made_from.settings_sha256[:_DIGEST_CHARS]] += 1
        for leaf in result.leaves():
            evidence = leaf.grounds
            if evidence.decided_by == "judge" and evidence.num_trials:
                self.trials[evidence.num_trials] += 1


def paper_sentence(
    summary: AgentSummary,
    answers: Sequence[ScoredAnswer],
    making: Making,
    correction: CorrectionFigures | None,
) -> str | None:
    """Return the sentence, ``None`` without a score.

    Args:
        answers: those with a score.
        making: of their results.
    """
    score = summary.shown_score
    if score is None:
        return None
    figures = summary.shown_intervals["avg_score"]
    interval = None
    if figures.low is not None and figures.high is not None:
        interval = Interval(figures.low, figures.high)
    unscored = len(summary.missing)
    treatment = "counted as 0" if summary.missing_counted_as_zero else "left out"
    missing = f"{unscored} without a score {treatment}" if unscored else "none without a score"
    tasks = counted(summary.num_tasks, "task")
    judged = counted(len(answers), "answer")
    shown = percent(score) + _within(interval, "tasks at large")
    provider, prompts = _most_first(making.providers), _most_first(making.prompts)
    return (
        f"{summary.agent_name} reached a partial completion of {shown} on {tasks} "
        f"({judged}, {missing}), judged by {_judges(answers)} (provider {provider}) with "
        f"Mind2Web2 {_versions(answers)}, prompts {prompts}, {_votes(making)}; "
        f"{_correction_words(correction)}."
    )


def _within(interval: Interval | Ends | None, of: str) -> str:
    return (
        ""
        if interval is None
        else f" ({LEVEL:.0%} interval for {of} {percent(interval.low)} to {percent(interval.high)})"
    )


def _correction_words(correction: CorrectionFigures | None) -> str:
    if correction is None or correction.corrected is None:
        return "not corrected for the judge's errors"
    these = _within(correction.these_tasks, "these tasks")
    return f"corrected by {correction.by}: {percent(correction.corrected)}{these}"


def _judges(answers: Iterable[ScoredAnswer]) -> str:
    """Return each judge once, and other names under which they were served."""
    judged = [answer for answer in answers if answer.reason is None]
    judges = judges_of(judged)
    others = ", ".join(sorted(served_names(judged).keys() - judges))
    served = f" (served as {others})" if others else ""
    return f"{', '.join(sorted(judges)) or 'unknown'}{served}"


def _versions(answers: Iterable[ScoredAnswer]) -> str:
    return _most_first(Counter(answer.facts.own_version for answer in answers))


def _votes(making: Making) -> str:
    if not making.trials:
        return "votes not recorded"
    most = [str(number) for number, _ in making.trials.most_common()]
    if most == ["1"]:
        return "one vote a claim"
    return f"majority of at most {' or '.join(most)} votes a claim"


def _most_first(counts: Counter[str]) -> str:
    """Return names, the most frequent first, each once."""
    return ", ".join(name for name, _ in counts.most_common() if name) or "unknown"
