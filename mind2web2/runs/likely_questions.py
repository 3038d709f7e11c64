"""The questions that a script asks about an answer if replies are as expected: for estimates."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from mind2web2.errors import EvalScriptError
from mind2web2.pages.citations import cited_urls
from mind2web2.scripts.made_up import (
    DEFAULT_ITEMS,
    Choices,
    FieldShape,
    Kind,
    Values,
)
from mind2web2.scripts.policies import PolicyScript, Surroundings
from mind2web2.utils.workers import call_in_worker
from mind2web2.verification.run_questions import AskedClaim, AskedForm

_TIMEOUT_S = 60.0
# For the worker itself.
_GRACE_S = 10.0


@dataclass(frozen=True)
class LikelyQuestion:
    """A question to the judge; ``num_trials`` is ``None`` if it is not a claim."""

    is_on_page: bool
    num_trials: int | None = None


@dataclass(frozen=True)
class _LikelyReplies:
    """Supports each claim, and fills templates with made-up values and the cited addresses."""

    urls: Sequence[str]

    def holds(self, _claim: AskedClaim) -> bool:
        return True

    def fill(self, form: AskedForm, template: type[BaseModel]) -> Values:
        kinds: Mapping[Kind, tuple[str, ...]] = {"address": tuple(self.urls)} if self.urls else {}
        addresses = (shape for shape in FieldShape.all_of(template) if shape.kind == "address")
        counts = {(form.name, shape.path): DEFAULT_ITEMS for shape in addresses}
        choices = Choices(kinds=kinds, counts=counts)
        return choices.made_up(template, form.name, 0)

    def has_page(self, _url: str) -> bool:
        return True


def likely_questions(script: Path, answer: str) -> list[LikelyQuestion]:
    """Run a script once with made-up replies and return what it asks the judge.

    Raises:
        EvalScriptError: the script fails with such replies.
    """
    surroundings = Surroundings.of_command()
    # A worker has a working directory of its own.
    arguments = (script.absolute(), answer, surroundings)
    return call_in_worker(_questions_of, *arguments, timeout_s=_TIMEOUT_S + _GRACE_S)


def _questions_of(script: Path, answer: str, surroundings: Surroundings) -> list[LikelyQuestion]:
    surroundings.take_over()
    policy = _LikelyReplies(cited_urls(answer))
    run = asyncio.run(PolicyScript(script, _TIMEOUT_S).run(answer, policy))
    if run.error is not None:
        raise EvalScriptError(run.error)
    claims = (LikelyQuestion(bool(each.urls), each.verification.num_trials) for each in run.claims)
    forms = (LikelyQuestion(each.url is not None) for each in run.forms)
    return [*claims, *forms, *[LikelyQuestion(False)] * run.chats]
