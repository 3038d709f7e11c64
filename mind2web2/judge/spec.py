"""The judge of a run: provider, server, model, parameters, limits and price."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.judge.cascade import JudgeCascade
from mind2web2.judge.delivery import DIRECT, Delivery
from mind2web2.judge.judgment import JudgeIdentity, JudgmentSource
from mind2web2.llm_client.chat import ImageLimit
from mind2web2.llm_client.own_price import OwnPrice
from mind2web2.llm_client.settings import (
    DEFAULT_JUDGE_MODEL,
    OWN_PARAMETERS,
    Servers,
    endpoint_of,
)
from mind2web2.rubric.vote_rule import ALWAYS, VoteRule, vote_rule
from mind2web2.utils import values
from mind2web2.utils.given_values import check_number, check_text


@dataclass(frozen=True)
class JudgeSpec:
    """The model that judges, as the options of ``mind2web2 evaluate`` name it.

    Args:
        model: whatever model the scripts name, this one judges.
        base_url: default from the provider's environment variable; ``Servers`` are several of the
            model, such as a ``PoolSource`` of the plugin ``pool``.
        provider: ``openai`` (any compatible server), ``azure_openai``, or one of a plugin, such as
            ``anthropic``.
        api_key: default from the provider's environment variable.
        temperature: ``None`` is the client's default: 0, and none for reasoning models.
        max_images: of a page in one question, 0 for none; ``None`` for as many as the server
            accepts.
        extra_body: further parameters of each request, or their JSON.
        votes: how often it votes on a claim, as ``--votes``; no part of a judgment's key.
        first: a judge that votes on claims before this one, which then decides where votes of the
            first differ or a gate fails (``--judge_cascade``); a model, or ``MODEL@SERVER`` for one
            on another server.
        outage_wait_s: how long a request waits for a server that became unreachable.
        client: an object of your own with ``async_response`` instead of a server (eval-scripts.md);
            a ``Scorer`` calls it in its thread.
        price: dollars per million tokens of input, of output, and (if it differs) of cached input,
            for a model whose price neither the price list nor ``mind2web2.toml`` has.
        delivery: how questions reach it, which a run's settings say.
        replayed_endpoint: for a replay, the server whose judgments count; ``None`` takes any
            server's.
        replayed_from: for a replay, the file of its judgments.
        image_limits: for a replay, the limits within which the recorded run may have asked: its
            own, and those that the judge named; read from the store.

    Raises:
        UsageError: a value is not such as its option takes.
    """

    model: str = DEFAULT_JUDGE_MODEL
    base_url: str | Servers | None = field(default=None, repr=False)
    provider: str = "openai"
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None
    extra_body: Mapping[str, Any] | str | None = None
    votes: str | int = ALWAYS
    first: JudgeSpec | str | None = None
    outage_wait_s: float = 120.0
    client: Any = None  # any object with async_response
    price: OwnPrice | tuple[float, float] | tuple[float, float, float] | None = None
    delivery: Delivery = DIRECT
    replayed_endpoint: str | None = None
    replayed_from: JudgmentSource | None = None
    image_limits: tuple[ImageLimit, ...] = ()

    def __post_init__(self) -> None:
        self._check()
        if self.client is not None:
            self._set("provider", "client")
        if isinstance(self.base_url, Servers):
            self._set("base_url", self.base_url.serving(self.model))
        if not isinstance(self.extra_body, str | None):
            self._set("extra_body", _json_of(self.extra_body))
        self._set("votes", _votes(self.votes))
        if self.price is not None:
            self._set("price", _own_price(self.price))
        if isinstance(self.first, str):
            self._set("first", self._first_named(self.first))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        check_text("model", self.model)
        if isinstance(self.base_url, str):
            check_text("base_url", self.base_url)
        check_number("temperature", self.temperature, values.temperature)
        check_number("max_images", self.max_images, values.count)
        check_number("outage_wait_s", self.outage_wait_s, values.positive_seconds)
        server = self.base_url
        if isinstance(server, Servers) and server.model not in (None, self.model):
            raise UsageError(
                f"the judge pool serves {server.model}, but the judge's model is {self.model}"
            )

    def _first_named(self, name: str) -> JudgeSpec:
        try:
            cascade = JudgeCascade.parsed(f"{name},{self.model}")
        except ValueError as error:
            raise UsageError(
                f"first is {name!r} beside the model {self.model!r}: {error}"
            ) from error
        return self.preceded_by(cascade).preceding or self

    def preceded_by(self, cascade: JudgeCascade) -> JudgeSpec:
        """Return this judge with a cheap one before it.

        Temperature, effort and further parameters are this judge's, because models accept different
        ones. The key is this judge's too, because it belongs to its server.

        Raises:
            UsageError: the cheap one's server cannot be used.
        """
        server = cascade.first_server()
        if server is None and isinstance(self.base_url, Servers):
            raise UsageError("the servers of a pool serve one model: give first='MODEL@SERVER'")
        first = JudgeSpec(
            cascade.first,
            self.base_url if server is None else server,
            self.provider if server is None else "openai",
            self.api_key if server is None else None,
            max_images=self.max_images,
            outage_wait_s=self.outage_wait_s,
            client=self.client if server is None else None,
            delivery=self.delivery,
        )
        return replace(self, first=first)

    @property
    def preceding(self) -> JudgeSpec | None:
        """Return the judge that is asked about claims before this one."""
        return None if isinstance(self.first, str) else self.first

    def in_turn(self) -> list[JudgeSpec]:
        """Return the judges that vote on claims, in the order in which they are asked."""
        before = [] if self.preceding is None else self.preceding.in_turn()
        return [*before, self]

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
    def keyed_body(self) -> str | None:
        """Return the part of ``extra_body`` that belongs to a judgment's key."""
        return keyed_part(self.parameters)

    @property
    def vote_rule(self) -> VoteRule:
        """Return how often the judge votes on a claim."""
        return VoteRule.parsed(self.votes)

    @property
    def own_price(self) -> OwnPrice | None:
        """Return the price that the user gave."""
        return None if self.price is None else OwnPrice(*self.price)

    def priced(self, prices: Mapping[str, OwnPrice]) -> JudgeSpec:
        """Return the judge with the user's prices by model, where it has none of its own."""
        first = self.preceding
        price = self.price or prices.get(self.model)
        return replace(self, price=price, first=None if first is None else first.priced(prices))

    def identity(self, endpoint: str) -> JudgeIdentity:
        """Return the judge as the store of judgments knows it."""
        return JudgeIdentity(
            model=self.model,
            endpoint=endpoint,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            max_images=self.max_images,
            extra_body=self.keyed_body,
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


def _votes(votes: object) -> str:
    try:
        return vote_rule(votes)
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
        raise UsageError(f"extra_body is no JSON object: {error}") from error
