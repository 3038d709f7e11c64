"""A decision model on loopback: OpenAI's ``/decisions`` and ``/systemone``.

with DecisionServer(lambda claim: 0.97) as server:      ``None`` refuses, or leaves the question out
    ... server.base_url ... server.requests ... server.asked_together
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from projects import block_in
from servers.local_http import Answer, LocalHttp, Request

Probability = Callable[..., Any]


@dataclass(frozen=True)
class Asked:
    """One request, as both protocols have it."""

    path: str
    body: Mapping[str, Any]
    state: str
    images: int
    questions: Mapping[str, str]

    @property
    def claims(self) -> list[str]:
        """Return the claims in the order asked."""
        return [block_in(text, "claim") for text in self.questions.values()]


class DecisionServer:
    """Answers while its ``with`` block runs; ``faults`` are answered first, one a request.

    Args:
        probability: of a claim, or of a claim and its request.
        tokens: that each request is billed for, and ``question_tokens`` for each question.
    """

    def __init__(
        self,
        probability: Probability,
        *,
        faults: Sequence[Answer] = (),
        tokens: int = 1000,
        question_tokens: int = 1,
    ) -> None:
        takes_request = len(signature(probability).parameters) > 1
        self._probability = (
            probability if takes_request else lambda claim, _asked: probability(claim)
        )
        self.requests: list[Asked] = []
        self._tokens = tokens
        self._question_tokens = question_tokens
        self._faults = list(faults)
        self._http = LocalHttp(self._answer)

    @property
    def base_url(self) -> str:
        """Return the address to give as a base URL."""
        return f"{self._http.url}/v1"

    @property
    def asked_together(self) -> list[list[str]]:
        """Return the claims of each request, sorted."""
        return [sorted(asked.claims) for asked in self.requests]

    @property
    def claims(self) -> list[str]:
        """Return all claims asked, sorted."""
        return sorted(claim for asked in self.requests for claim in asked.claims)

    def __enter__(self) -> "DecisionServer":
        self._http.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._http.__exit__(*error)

    def _answer(self, request: Request) -> Answer:
        if request.method == "GET":
            return Answer(json.dumps({"data": []}).encode())
        body = json.loads(request.body)
        is_openai = request.path == "/v1/decisions"
        if not is_openai and request.path != "/v1/systemone":
            return Answer(b'{"error": {"message": "no such path"}}', 404)
        asked = (_of_openai if is_openai else _of_system_one)(request.path, body)
        self.requests.append(asked)
        if self._faults:
            return self._faults.pop(0)
        given = {
            name: self._probability(block_in(text, "claim"), asked)
            for name, text in asked.questions.items()
        }
        tokens = self._tokens + self._question_tokens * len(given)
        reply = {
            "model": f"{body['model']}-2026-10-06",
            "answers": _openai_answers(given) if is_openai else _nouls(given),
            "usage": {
                "input_tokens": tokens,
                "output_tokens": 0,
                "total_tokens": tokens,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }
        return Answer(
            json.dumps(reply).encode(), headers={"Content-Type": "application/json"}
        )


def _of_openai(path: str, body: Mapping[str, Any]) -> Asked:
    parts = body["input"][1]["content"]
    texts = [part["text"] for part in parts if part["type"] == "input_text"]
    assert all(question["type"] == "predicate" for question in body["questions"])
    questions = {each["name"]: each["instructions"] for each in body["questions"]}
    return Asked(path, body, "\n".join(texts), len(parts) - len(texts), questions)


def _of_system_one(path: str, body: Mapping[str, Any]) -> Asked:
    questions = body["questions"]
    assert all(question["type"] == "noul" for question in questions.values())
    asked = {name: each["instructions"] for name, each in questions.items()}
    return Asked(path, body, body["state"], 0, asked)


def _openai_answers(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "refusal", "name": name}
        if probability is None
        else {"type": "predicate", "name": name, "probability": probability}
        for name, probability in given.items()
    ]


def _nouls(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {"type": "noul", "noul": probability}
        for name, probability in given.items()
        if probability is not None
    }
