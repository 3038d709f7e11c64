"""The progress of a run in a file beside its results, for others to follow."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from mind2web2.judge.protocol import RunUsage, rounded_usd
from mind2web2.runs.run import RunProgress
from mind2web2.utils.files import write_whole

log = logging.getLogger(__name__)

FILE_NAME = "progress.json"
RunState = Literal["running", "ended", "stopped"]
_NEWEST_OUTCOMES = 50


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(slots=True)
class ProgressFile:
    """``eval_results/<agent>/progress.json``; a disk that refuses it is logged once and stops no run."""

    path: Path
    started: str = field(default_factory=_now)
    _is_failing: bool = False

    def write(self, progress: RunProgress, usage: RunUsage, state: RunState) -> None:
        """Write how far the run has come."""
        content = self._content(progress, usage) | {"state": state}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(content, ensure_ascii=False, indent=1)
            write_whole(self.path, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            if not self._is_failing:
                log.warning("progress not written path=%s error=%s", self.path, error)
            self._is_failing = True

    def _content(self, progress: RunProgress, usage: RunUsage) -> dict[str, Any]:
        total = usage.total()
        outcomes = progress.outcomes
        return {
            "pid": os.getpid(),
            "started": self.started,
            "updated": _now(),
            "answers_total": progress.answers_total,
            "answers_done": len(outcomes),
            "answers_scored": sum(outcome.score is not None for outcome in outcomes),
            "answers_reused": sum(outcome.reused for outcome in outcomes),
            "tasks_total": progress.tasks_total,
            "tasks_done": progress.tasks_done,
            "running": list(progress.running),
            "waiting": list(progress.waiting),
            "judgments": total.asked.judgments,
            "judgments_reused": total.reused.judgments,
            "requests": total.asked.requests,
            "tokens": total.asked.input_tokens + total.asked.output_tokens,
            "cost_usd": rounded_usd(total.asked),
            "retries": dict(usage.retries.reasons),
            "rate_limit": usage.slowdown.in_words(),
            "errors": dict(Counter(str(outcome.reason) for outcome in outcomes if outcome.score is None)),
            "problems": list(progress.problems),
            "newest": [
                {"task": outcome.task_id, "answer": outcome.answer_name, "score": outcome.score}
                for outcome in outcomes[-_NEWEST_OUTCOMES:]
            ],
        }
