"""The model that judges a run, its parameters, and which of them belong to a judgment's key."""

from __future__ import annotations

import json
from dataclasses import dataclass

from mind2web2.judge.store import JudgmentSource
from mind2web2.llm_client.chat import ImageLimit
from mind2web2.rubric.vote_rule import ALWAYS


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """The model that judges a run, and its parameters.

    Args:
        replayed_endpoint: for a replay, the server whose judgments count; ``None`` takes any server's.
        replayed_from: for a replay, the file of its judgments.
        temperature: ``None`` is the client's default: 0, and none for reasoning models.
        batch: requests go out in batch jobs, at a lower price.
        max_images: most images in one question, 0 for none; ``None`` for the judge's own limit.
        image_limits: for a replay, the limits within which the recorded run may have asked: its own, and
            those that the judge named; read from the store.
        extra_body: JSON object of further parameters of each request; ``None`` for none.
        votes: how often the judge votes on a claim; no part of a judgment's key.
        first: a judge that is asked about claims before this one (``CASCADE_RULE``); ``None`` for one judge.
    """

    provider: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    replayed_endpoint: str | None = None
    replayed_from: JudgmentSource | None = None
    batch: bool = False
    max_images: int | None = None
    image_limits: tuple[ImageLimit, ...] = ()
    extra_body: str | None = None
    votes: str = ALWAYS
    first: JudgeSettings | None = None

    @property
    def keyed_body(self) -> str | None:
        """Return the part of ``extra_body`` that belongs to a judgment's key."""
        return keyed_part(self.extra_body)


# Parameters that change when and where a request is answered, and what is billed, but not the
# reply.
_NEUTRAL_PARAMETERS = frozenset(
    {
        *(
            "cache_salt",
            "metadata",
            "priority",
            "prompt_cache_key",
            "prompt_cache_retention",
            "request_id",
        ),
        *("safety_identifier", "service_tier", "store", "user"),
    }
)


def keyed_part(extra_body: str | None) -> str | None:
    """Return the parameters that can change replies, as JSON in a fixed form; ``None`` for none."""
    parameters = json.loads(extra_body or "{}")
    keyed = {name: value for name, value in parameters.items() if name not in _NEUTRAL_PARAMETERS}
    return json.dumps(keyed, sort_keys=True, separators=(",", ":")) if keyed else None
