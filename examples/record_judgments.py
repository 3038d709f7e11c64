"""Turn ``readings.json`` into recorded judgments, for whoever changes prompts, scripts, answers or pages.

    uv run python examples/record_judgments.py [FILE]

runs the nine evaluations through the real pipeline, answers every question from the readings, and writes
``judgments.jsonl``, or the file named. A question without a reading, a reading that nobody asked for, and a
score other than the one derived by hand are errors.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from mind2web2.answer_evaluation import AnswerOutcome, RunParts
from mind2web2.errors import JudgmentMissingError
from mind2web2.eval_runner import DualSemaphore, Pace, RunFolders, RunProgress, evaluate_work
from mind2web2.judge import Subject
from mind2web2.judgment import Judgment, judgment_key
from mind2web2.judgment_files import export_judgments
from mind2web2.judgments import JudgmentStore
from mind2web2.llm_client.chat import ChatRequest, Limit
from mind2web2.page_library import PageLibrary
from mind2web2.recorded_judge import JudgeSettings, RecordedJudge
from mind2web2.selection import select_work
from mind2web2.utils.path_config import PathConfig

AGENT = "example"
EXAMPLES = Path(__file__).parent
# A fixed moment, so that recording again changes only what the readings, prompts or pages changed.
READ_ON = "2026-11-21T00:00:00.000+00:00"

ReadingKey = tuple[str | None, ...]


class ReadingJudge(RecordedJudge):
    """Answers from readings and keeps each as a judgment of the model ``human-reading``."""

    def __init__(self, store: JudgmentStore, readings: dict[str, Any]) -> None:
        super().__init__(JudgeSettings("replay", "human-reading"), None, store)
        self._store_of_readings = store
        self._readings = _by_question(readings)
        self.unused = set(self._readings)

    async def judgment(
        self,
        request: ChatRequest,
        subject: Subject,
        source: tuple[str, str],
        limit: Limit,  # noqa: ARG002
    ) -> Judgment:
        """Return the reading on a question as a judgment."""
        question: ReadingKey = (*source, subject.purpose, subject.node, subject.page)
        if subject.purpose == "extract":
            question = question[:4]
        if question not in self._readings:
            raise JudgmentMissingError(f"no reading on {question}: {subject.claim}")
        self.unused.discard(question)
        judgment = Judgment(
            key=judgment_key(request, subject.trial),
            endpoint="person",
            model=request.model,
            outcome="reply",
            text=json.dumps(self._readings[question], ensure_ascii=False),
            created=READ_ON,
            task_id=source[0],
            answer_name=source[1],
            purpose=subject.purpose,
            node=subject.node,
            claim=subject.claim,
            page=subject.page,
            trial=subject.trial,
        )
        await self._store_of_readings.put(judgment)
        return judgment


def _by_question(readings: dict[str, Any]) -> dict[ReadingKey, Any]:
    extractions = {
        (reading["task"], reading["answer"], "extract", reading["name"]): reading["value"]
        for reading in readings["extractions"]
    }
    verdicts = {
        (reading["task"], reading["answer"], "verify", reading["node"], reading["page"]): {
            "reasoning": reading["reasoning"],
            "result": reading["result"],
        }
        for reading in readings["verdicts"]
    }
    return {**extractions, **verdicts}


async def record(judge: ReadingJudge, results: Path) -> list[AnswerOutcome]:
    """Run the nine evaluations and return what became of them."""
    paths = PathConfig(EXAMPLES.parent)
    run = RunParts(
        judge=judge,
        library=PageLibrary(),
        limits=DualSemaphore(asyncio.Semaphore(1), asyncio.Semaphore(1)),
        reuse=False,
        answer_timeout_s=None,
    )
    folders = RunFolders(AGENT, paths.cache_root, results)
    return await evaluate_work(select_work(paths, AGENT), folders, run, Pace(), RunProgress())


def complaints(judge: ReadingJudge, outcomes: list[AnswerOutcome], expected: dict[str, Any]) -> list[str]:
    """Return what does not fit, one line each."""
    found = [f"unused reading: {question}" for question in sorted(judge.unused, key=str)]
    for outcome in outcomes:
        wanted = expected[outcome.task_id][outcome.answer_name]
        name = f"{outcome.task_id}/{outcome.answer_name}"
        if outcome.score is None:
            found.append(f"{name}: {outcome.reason}")
        elif abs(outcome.score - wanted) > 1e-9:
            found.append(f"{name}: score {outcome.score}, by hand {wanted}")
    return found


def main(output: Path = EXAMPLES / "judgments.jsonl") -> int:
    """Record the judgments into a file and return the exit status."""
    readings = json.loads((EXAMPLES / "readings.json").read_text(encoding="utf-8"))
    expected = json.loads((EXAMPLES / "expected_scores.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as results, JudgmentStore(None) as store:
        judge = ReadingJudge(store, readings)
        found = complaints(judge, asyncio.run(record(judge, Path(results))), expected)
        if not found:
            count = export_judgments(store, output)
            sys.stdout.write(f"{count} judgments written to {output}\n")
            return 0
    sys.stderr.write("\n".join(found) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
