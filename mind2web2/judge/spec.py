"""The judge of a run, and its stored forms.

The judge has a provider, server, model, parameters, limits and a price.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.judge.judgment import FLEX_PRICE_SHARE
from mind2web2.judge.record import REPLAY, JudgeIdentity, JudgeRecord, JudgmentSource, server_named
from mind2web2.llm_client.chat import OwnPrice
from mind2web2.llm_client.settings import (
    DEFAULT_JUDGE_MODEL,
    OWN_PARAMETERS,
    endpoint_of,
)
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS, vote_count
from mind2web2.utils import values
from mind2web2.utils.values import check_number, check_text


@dataclass(frozen=True)
class JudgeSpec:
    """The model that judges, as the options of ``mind2web2 evaluate`` name it.

    Args:
        model: whatever model the scripts name, this one judges.
        base_url: default from the provider's environment variable.
        provider: ``openai`` (any compatible server), ``azure_openai``, or one of a plugin, such as
            ``anthropic``.
        api_key: default from the provider's environment variable.
        temperature: ``None`` is the client's default: 0, and none for reasoning models.
        max_images: of a page in one question, 0 for none; ``None`` for as many as the server
            accepts.
        extra_body: further parameters of each request, or their JSON.
        votes: the most on a claim, as ``--votes``; no part of a judgment's key.
        outage_wait_s: how long a request waits for a server that became unreachable.
        client: an object of your own with ``async_response`` instead of a server (eval-scripts.md);
            a ``Scorer`` calls it in its thread.
        price: dollars per million tokens of input, of output, and (if it differs) of cached input,
            for a model whose price neither the price list nor ``mind2web2.toml`` has.
        replayed_endpoint: for a replay, the server whose judgments count; ``None`` takes any
            server's.
        replayed_from: for a replay, the file of its judgments.

    Raises:
        UsageError: a value is not such as its option takes.
    """

    model: str = DEFAULT_JUDGE_MODEL
    base_url: str | None = field(default=None, repr=False)
    provider: str = "openai"
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None
    extra_body: Mapping[str, Any] | str | None = None
    votes: int = DEFAULT_TRIALS
    outage_wait_s: float = 120.0
    client: Any = None  # any object with async_response
    price: OwnPrice | tuple[float, float] | tuple[float, float, float] | None = None
    replayed_endpoint: str | None = None
    replayed_from: JudgmentSource | None = None

    def __post_init__(self) -> None:
        self._check()
        if self.client is not None:
            self._set("provider", "client")
        if not isinstance(self.extra_body, str | None):
            self._set("extra_body", _json_of(self.extra_body))
        self._set("votes", _votes(self.votes))
        if self.price is not None:
            self._set("price", _own_price(self.price))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        check_text("model", self.model)
        if self.base_url is not None:
            check_text("base_url", self.base_url)
        check_number("temperature", self.temperature, values.temperature)
        check_number("max_images", self.max_images, values.count)
        check_number("outage_wait_s", self.outage_wait_s, values.positive_seconds)

    @property
    def endpoint(self) -> str | None:
        """Return the name of the server for records, ``None`` where its address is not set."""
        return endpoint_of(self.provider, self.base_url)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the further parameters of each request."""
        parameters: dict[str, Any] = json.loads(str(self.extra_body or "{}"))
        return parameters

    @property
    def price_share(self) -> float:
        """Return which share of the list price its requests cost; OpenAI's flex tier costs half."""
        return FLEX_PRICE_SHARE if self.parameters.get("service_tier") == "flex" else 1.0

    @property
    def keyed_body(self) -> str | None:
        """Return the part of ``extra_body`` that belongs to a judgment's key."""
        return keyed_part(self.parameters)

    @property
    def shows_images(self) -> bool:
        """Tell whether the judge is shown images."""
        return self.max_images != 0

    @property
    def own_price(self) -> OwnPrice | None:
        """Return the price that the user gave."""
        return None if self.price is None else OwnPrice(*self.price)

    def with_prices(self, prices: Mapping[str, OwnPrice]) -> JudgeSpec:
        """Return the judge with the user's prices by model, where it has none of its own."""
        return replace(self, price=self.price or prices.get(self.model))

    def identity(self, endpoint: str) -> JudgeIdentity:
        """Return the judge as the store of judgments knows it."""
        return self.record(endpoint).identity

    def record(self, endpoint: str | None = None) -> JudgeRecord:
        """Return the judge as results record it.

        Args:
            endpoint: of the judge's server; default: as its address names it.
        """
        return JudgeRecord(
            provider=self.provider,
            endpoint=self.endpoint or "" if endpoint is None else endpoint,
            model=self.model,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            max_images=self.max_images,
            extra_body=self.keyed_body,
            votes=self.votes,
        )


# Parameters that change when and where a request is answered, and what is billed, but not the
# reply.
_NEUTRAL_PARAMETERS = frozenset(
    {
        "cache_salt",
        "metadata",
        "priority",
        "prompt_cache_key",
        "prompt_cache_retention",
        "request_id",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)


def keyed_part(parameters: Mapping[str, Any]) -> str | None:
    """Return the parameters that can change replies, as JSON in a fixed form; ``None`` for none."""
    keyed = {name: value for name, value in parameters.items() if name not in _NEUTRAL_PARAMETERS}
    return json.dumps(keyed, sort_keys=True, separators=(",", ":")) if keyed else None


def _votes(votes: object) -> int:
    try:
        return vote_count(votes)
    except ValueError as error:
        raise UsageError(f"votes is {error}") from error


def _own_price(price: Sequence[float | None]) -> OwnPrice:
    numbers = [usd for usd in price if usd is not None]
    if len(numbers) not in (2, 3) or not all(0 <= usd < math.inf for usd in numbers):
        raise UsageError(f"price is {price!r}: give (input, output) in dollars per million tokens")
    return OwnPrice(*numbers)


def _json_of(extra_body: object) -> str | None:
    if not isinstance(extra_body, Mapping):
        raise UsageError(f"extra_body is {extra_body!r}: give a dictionary")
    if own := sorted(OWN_PARAMETERS & extra_body.keys()):
        raise UsageError(f"extra_body has {own[0]}, which the judge sets itself: leave it out")
    try:
        return json.dumps(dict(extra_body), allow_nan=False) if extra_body else None
    except (TypeError, ValueError) as error:
        raise UsageError(f"extra_body is not a JSON object: {error}") from error


def replaying(
    judge: JudgeIdentity | JudgeRecord, votes: int, source: JudgmentSource | None = None
) -> JudgeSpec:
    """Return the judge that answers from the stored judgments of another one.

    Args:
        source: the file of these judgments, which results then name.
    """
    return JudgeSpec(
        judge.model,
        provider=REPLAY,
        temperature=judge.temperature,
        reasoning_effort=judge.reasoning_effort,
        max_images=judge.max_images,
        extra_body=judge.extra_body,
        votes=votes,
        replayed_endpoint=server_named(judge.endpoint),
        replayed_from=source,
    )
