"""A judge that answers from a script and keeps what it was asked: the seam of the tests."""

import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from mind2web2.verification.run_questions import BinaryEvalResult

BLOCK = re.compile(
    r"<<(?P<name>[a-z ]+) (?P<code>[0-9a-f]{20})>>\n(?P<text>.*)\n<<end of (?P=name) (?P=code)>>",
    re.S,
)


@dataclass(frozen=True)
class Question:
    """One request as the judge sees it."""

    model: str
    messages: list[dict[str, Any]]
    template: type[BaseModel] | None

    @property
    def parts(self):
        """Return the parts of the user's message."""
        return self.messages[-1]["content"]

    @property
    def text(self):
        """Return all text of the user's message."""
        return "".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def images(self):
        """Return the images' data URLs."""
        return [part["image_url"]["url"] for part in self.parts if part["type"] == "image_url"]

    @property
    def blocks(self):
        """Return the delimited texts by name."""
        return {match["name"]: match["text"] for match in _blocks(self.text)}

    @property
    def claim(self):
        """Return the claim."""
        return self.blocks["claim"]


def _blocks(text):
    position = 0
    while match := BLOCK.search(text, position):
        yield match
        position = match.end()


class ScriptedJudge:
    """A client that has only ``async_response``, as scripts and tests may pass (eval-scripts.md).

    Args:
        script: what to answer: a bool (a verdict), a pydantic instance or a dict (as it is), an
            exception (raised), a list of these (one a request, and not one more), or a function
            from a ``Question`` to any of them.
    """

    def __init__(self, script=True):
        self._script = list(script) if isinstance(script, list) else script
        self.questions = []

    async def async_response(self, *, model, messages, response_format=None):
        """Answer as scripted; a request beyond the script's end raises ``IndexError``."""
        question = Question(model, json.loads(json.dumps(messages)), response_format)
        self.questions.append(question)
        reply = self._script.pop(0) if isinstance(self._script, list) else self._script
        if callable(reply):
            reply = reply(question)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, bool):
            return BinaryEvalResult(reasoning=f"scripted {reply}", result=reply)
        return reply

    @property
    def claims(self):
        """Return the claims asked about, one a request."""
        return [question.claim for question in self.questions]
