"""A judge that goes on where a stored reply is missing."""

from __future__ import annotations

from datetime import UTC, datetime

from mind2web2.plugin import (
    REPLAY,
    AnswerLimits,
    BinaryEvalResult,
    CachingJudge,
    ChatRequest,
    JudgeRecord,
    Judgment,
    JudgmentMissingError,
    JudgmentStore,
    QuestionContext,
    judgment_key,
    replaying,
)


class StandInJudge(CachingJudge):
    """Replays stored judgments, and gives one verdict on each claim without any.

    A missing extraction still ends the script: nothing can stand in for its values.

    Attributes:
        missing: the keys of the judgments that are not stored.
    """

    def __init__(self, judge: JudgeRecord, store: JudgmentStore, *, passes: bool) -> None:
        super().__init__(replaying(judge, judge.votes), None, store)
        self.missing: set[str] = set()
        self._reply = BinaryEvalResult(reasoning="not judged", result=passes).model_dump_json()

    async def judgment(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        limits: AnswerLimits,
    ) -> Judgment:
        """Return the stored judgment on a request, or the verdict in its place."""
        try:
            return await super().judgment(request, subject, source, limits)
        except JudgmentMissingError:
            key = judgment_key(self.keyed(request), subject.trial)
            self.missing.add(key)
            if request.template is not BinaryEvalResult:
                raise
        return Judgment(
            key=key,
            endpoint=REPLAY,
            model=self.settings.model,
            outcome="reply",
            text=self._reply,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            task_id=source[0],
            answer_name=source[1],
            purpose=subject.purpose,
            node=subject.node,
            claim=subject.claim,
            page=subject.page,
            trial=subject.trial,
        )
