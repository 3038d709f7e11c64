"""The questions that a script asks about an answer if replies are as expected: for estimates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mind2web2.pages.citations import cited_urls
from mind2web2.results.answers import AnswerJob
from mind2web2.scripts.isolation.answer_client import SentRequest, SentTemplate
from mind2web2.scripts.isolation.rpc import Question, validated
from mind2web2.scripts.isolation.run import Isolation
from mind2web2.scripts.policies import result_by_policy
from mind2web2.scripts.run import ScriptCall
from mind2web2.utils.files import file_sha256
from mind2web2.verification.run_questions import AskedClaim, AskedForm

_LIST_ITEMS = 3
_MOST_LEVELS = 6
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class LikelyQuestion:
    """A question to the judge; ``num_trials`` is ``None`` if it is not a claim."""

    is_on_page: bool
    num_trials: int | None = None


@dataclass(frozen=True)
class _LikelyReplies:
    """Supports each claim, and fills templates with made-up values and the cited addresses."""

    urls: Sequence[str] = field(default_factory=list)

    def holds(self, _claim: AskedClaim) -> bool:
        return True

    def fill(self, _form: AskedForm, template: SentTemplate) -> str | None:
        return self._filled(template)

    def page(self, _url: str) -> str:
        return "A page."

    def chat(self, request: SentRequest) -> str:
        return "Yes." if request.template is None else self._filled(request.template)

    def service(self, _name: str, _arguments: Sequence[Any]) -> Any:
        return None

    def _filled(self, template: SentTemplate) -> str:
        if template.form is None:
            return json.dumps({"reasoning": "made up", "result": True})
        return json.dumps(self._value(template.form, template.form.get("$defs", {}), "value", 0))

    def _value(self, form: dict[str, Any], forms: dict[str, Any], name: str, level: int) -> Any:
        if "$ref" in form:
            return self._value(forms[form["$ref"].rpartition("/")[2]], forms, name, level)
        if "const" in form or "enum" in form:
            return form.get("const", form.get("enum", [None])[0])
        if choices := form.get("anyOf") or form.get("oneOf") or form.get("allOf"):
            return self._value(choices[0], forms, name, level)
        if form.get("type") == "array":
            count = 0 if level > _MOST_LEVELS else max(_LIST_ITEMS, form.get("minItems", 0))
            item = self._value(form.get("items", {}), forms, name, level + 1) if count else None
            return [item] * min(count, form.get("maxItems", count))
        if form.get("type") == "object":
            fields = form.get("properties", {}).items()
            return {key: self._value(each, forms, key, level + 1) for key, each in fields}
        return self._plain(form, name)

    def _plain(self, form: dict[str, Any], name: str) -> Any:
        kind = form.get("type")
        if kind in ("integer", "number"):
            return form.get("minimum", 1)
        if kind == "boolean":
            return True
        if form.get("format") in ("date", "date-time"):
            return "2025-01-01" if form["format"] == "date" else "2025-01-01T00:00:00Z"
        is_address = form.get("format") == "uri" or any(
            part in name.lower() for part in ("url", "link", "source")
        )
        if is_address:
            return next(iter(self.urls), "https://www.example.org/")
        return f"the {name}"


def likely_questions(job: AnswerJob, text: str, isolation: Isolation) -> list[LikelyQuestion]:
    """Run a script once with made-up replies and return what it asks the judge.

    Raises:
        EvalScriptError: the script fails with such replies.
    """
    path = job.script_path
    call = ScriptCall(path, file_sha256(path), job.agent_name, job.answer.name, text, "estimate")
    policy = _LikelyReplies(cited_urls(text))
    running = result_by_policy(call, policy, isolation=isolation, timeout_s=_TIMEOUT_S)
    result = asyncio.run(running)
    found = (_of_judge(question) for question in result.questions)
    return [question for question in found if question is not None]


def _of_judge(question: Question) -> LikelyQuestion | None:
    if question.name == "judged":
        claim = validated(AskedClaim, question.arguments["claim"])
        return LikelyQuestion(bool(claim.urls), claim.verification.num_trials)
    if question.name == "filled":
        form = validated(AskedForm, question.arguments["form"])
        return LikelyQuestion(form.url is not None)
    return LikelyQuestion(False) if question.name == "chat" else None
