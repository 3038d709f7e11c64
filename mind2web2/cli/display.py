"""What an evaluation shows while it goes on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mind2web2.answer_evaluation import AnswerOutcome
from mind2web2.cli.live_display import LiveDisplay
from mind2web2.eval_runner import RunProgress
from mind2web2.recorded_judge import RunTotals
from mind2web2.utils.dollars import dollars

_NAMES_SHOWN = 4


class RunDisplay(LiveDisplay):
    """Shows which answers are done and what the judge was asked."""

    def __init__(self, console: Console, progress: RunProgress, totals: RunTotals) -> None:
        super().__init__(console)
        self._progress = progress
        self._totals = totals
        self._told = 0
        self._told_waiting: set[str] = set()

    def news(self) -> Iterator[str]:
        """Yield a line for each answer, and for each that is waited for."""
        for name in self._progress.waiting.keys() - self._told_waiting:
            self._told_waiting.add(name)
            yield f"{name}.md: another process is judging it; waiting for its result"
        for outcome in self._progress.outcomes[self._told :]:
            self._told += 1
            told = f"{self._count()} {_outcome_text(outcome)}"
            if not self.is_live and self._totals.asked:
                told += f" (so far: {totals_text(self._totals)})"
            yield told

    def state(self) -> RenderableType:
        """Return how many answers are done, what was asked, and which are under way."""
        progress = self._progress
        done, total = len(progress.outcomes), progress.answers_total
        line = Table.grid(padding=(0, 2))
        line.add_row(
            ProgressBar(total=max(total, 1), completed=done, width=24),
            f"{done}/{total} answers",
            f"{progress.tasks_done}/{progress.tasks_total} tasks",
        )
        names = [*progress.running, *(f"{name} (another process)" for name in progress.waiting)]
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        return Group(
            line, Text(totals_text(self._totals)), Text(", ".join(names[:_NAMES_SHOWN]) + more, style="dim")
        )

    def sign_of_life(self) -> str:
        """Return what was asked so far."""
        return f"{self._count()} {totals_text(self._totals)}"

    def _count(self) -> str:
        return f"[{self._told}/{self._progress.answers_total}]"


def totals_text(totals: RunTotals) -> str:
    """Return what a run has asked so far in one line."""
    tokens = totals.usage.input_tokens + totals.usage.output_tokens
    cost = "price unknown" if totals.cost_usd is None else dollars(totals.cost_usd)
    told = f"{totals.asked} judgments asked, {totals.reused} reused, {tokens:,} tokens, {cost}"
    parts = (told, totals.slowdown.in_words(), totals.retries.in_words())
    return "; ".join(part for part in parts if part)


def _outcome_text(outcome: AnswerOutcome) -> str:
    name = f"{outcome.task_id}/{outcome.answer_name}"
    if outcome.score is None:
        return f"{name}: no result: {outcome.reason}"
    return f"{name}: {outcome.score:.4f}{', reused' if outcome.reused else ''}"
