"""The replies of the example's answer key, for judges on loopback."""

from pathlib import Path
from typing import Any, NamedTuple

from projects import REPOSITORY, block_in
from servers.judge_server import prompt_text

from mind2web2.judge.judgment import Judgment
from mind2web2.judge.transfer import read_judgments
from mind2web2.results.answers import read_answer

RECORDED = REPOSITORY / "examples" / "judgments.jsonl"


_NO = '{"reasoning": "not recorded", "result": false, "quote": ""}'


class Question(NamedTuple):
    """The question of a request; trials of one vote and repairs ask the same."""

    claim: str | None
    page: str | None
    answer: str | None


class RecordedReplies:
    """Says to each question what is recorded for its claim, page and answer."""

    def __init__(self, recorded: Path = RECORDED) -> None:
        """Read the recorded judgments."""
        self._recorded = {
            _question_of(judgment): judgment.text for judgment in read_judgments(recorded)
        }

    def __call__(self, body: dict[str, Any]) -> str:
        """Return the recorded reply to a request; a claim that was not asked does not hold."""
        question = question_in(body)
        return self.to(question, None if question.claim is None else _NO)

    def to(self, question: Question, otherwise: str | None = None) -> str:
        """Return the recorded reply to a question, or else the other one.

        Raise ``KeyError`` where there is neither.
        """
        return (
            self._recorded[question]
            if otherwise is None
            else self._recorded.get(question, otherwise)
        )


def question_in(body: dict[str, Any]) -> Question:
    """Return what a request asks."""
    prompt = prompt_text(body)
    return Question(
        block_in(prompt, "claim"),
        block_in(prompt, "page address"),
        block_in(prompt, "answer"),
    )


def _question_of(judgment: Judgment) -> Question:
    if judgment.purpose == "extract" and judgment.page is not None:
        return Question(None, judgment.page, None)
    folder = REPOSITORY / "answers" / "example" / judgment.task_id
    return Question(judgment.claim, judgment.page, read_answer(folder / judgment.answer_name))
