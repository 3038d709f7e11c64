"""The run's judge as a script's process has it: questions go to the run, which has keys, store and pace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from mind2web2.answer_judge import AnswerJudge
from mind2web2.claim_judging import BinaryEvalResult
from mind2web2.failure_latch import Failure
from mind2web2.isolation.channel import Channel
from mind2web2.isolation.messages import Message, error_as_json
from mind2web2.isolation.run_pages import PageText
from mind2web2.judge import Subject
from mind2web2.judgment import Judgment
from mind2web2.llm_client.chat import ChatRequest, Limit
from mind2web2.llm_client.structured_output import InvalidOutputError, read_template
from mind2web2.llm_client.transport import Completion
from mind2web2.program_order import watching
from mind2web2.recorded_judge import JudgeSettings


class RunJudge:
    """Stands for the run's ``RecordedJudge``.

    Args:
        settings: the run's.
        endpoint: likewise.
    """

    def __init__(self, channel: Channel, settings: JudgeSettings, endpoint: str) -> None:
        self.settings = settings
        self.endpoint = endpoint
        self._channel = channel
        self._templates: list[type[BaseModel]] = []
        self._told_templates: list[Message] = []

    async def judgment(
        self,
        request: ChatRequest,
        subject: Subject,
        source: tuple[str, str],  # noqa: ARG002 (the run knows whose process this is)
        limit: Limit,  # noqa: ARG002 (the run enters its own)
    ) -> Judgment:
        """Return what ``RecordedJudge.judgment`` returns."""
        told = await self._channel.ask(
            "judgment",
            messages=[_told_message(message) for message in request.messages],
            template=self._told_template(request.template),
            extra=dict(request.extra),
            subject=asdict(subject),
        )
        return Judgment.model_validate(told)

    async def gate(
        self,
        subject: Subject,
        source: tuple[str, str],  # noqa: ARG002 (likewise)
        ordinal: int,
        skip_reason: str | None,
    ) -> str | None:
        """Return what ``RecordedJudge.gate`` returns."""
        told = await self._channel.ask(
            "gate", subject=asdict(subject), ordinal=ordinal, skip_reason=skip_reason
        )
        return None if told is None else str(told)

    def check(self, message: Message) -> Message:
        """Tell the run what is wrong with a reply, which only the script's own template knows."""
        try:
            read_template(Completion(text=message["text"]), self._templates[message["template"]])
        except InvalidOutputError as problem:
            return {"value": str(problem)}
        except Exception as error:
            # A template's own code may raise anything; the run takes it for the failure that it is.
            return {"error": error_as_json(error)}
        return {"value": None}

    def _told_template(self, template: type[BaseModel] | None) -> Message | None:
        if template is None:
            return None
        if template is BinaryEvalResult:
            return {"number": None}
        if template not in self._templates:
            told = {"name": template.__name__, "form": template.model_json_schema()}
            self._told_templates.append({"number": len(self._templates), **told})
            self._templates.append(template)
        return self._told_templates[self._templates.index(template)]


@watching
class ScriptJudge(AnswerJudge):
    """The client of a script in a process of its own: the run hears of every failure at once."""

    def __init__(self, channel: Channel, run: RunJudge, task_id: str, answer_name: str) -> None:
        super().__init__(run, task_id, answer_name)
        self._channel = channel

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good, here and there."""
        if self._latch.failure is None:
            self._channel.note("failed", error=error_as_json(failure))
        return self._latch.fail(failure)


def _told_message(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    if not isinstance(content, Sequence) or isinstance(content, str):
        return dict(message)
    return {**message, "content": [_told_part(part) for part in content]}


def _told_part(part: Any) -> Any:
    """Return a part of a message, with what the run has of a page as a reference to that."""
    if not isinstance(part, Mapping):
        return part
    text, image = part.get("text"), part.get("image_url")
    if isinstance(text, PageText):
        return {**part, "text": text.reference}
    if isinstance(image, Mapping) and isinstance(image.get("url"), PageText):
        return {**part, "image_url": {**image, "url": image["url"].reference}}
    return dict(part)
