"""The cost limit of a run.

A request's price is reserved before it is sent, and settled with its reply. A request that exceeds
the remaining budget waits while others are in flight, since they may cost less than reserved; it is
refused once the dollars spent leave no room for it. The budget is exceeded at most by the amount
that requests in flight cost above their estimates.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from mind2web2.errors import BudgetReachedError, UsageError
from mind2web2.judge.permit import AnswerLimits, CircuitBreaker, Permit
from mind2web2.judge.tokens import request_tokens
from mind2web2.llm_client.chat import ChatRequest, OwnPrice, Usage
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.prices import price_usd
from mind2web2.utils.text import dollars, dollars_as_given

log = logging.getLogger(__name__)

# The guess for a reply until the first replies: a short verdict, and the hidden reasoning before
# it.
_FIRST_OUTPUT_TOKENS = 1000
# Until so many replies, the requests in flight must fit even if the estimates are wrong by this
# factor.
_ENOUGH_REPLIES = 5
_CAUTION = 20.0


# Takes the dollars that a request lacks, and returns those that it may have, 0 if none are left.
Lease = Callable[[float], Awaitable[float]]


def shared_lease(left_usd: float) -> Lease:
    """Return what gives the budgets of several judges dollars, until these are spent."""

    async def lease(missing_usd: float) -> float:
        nonlocal left_usd
        leased_usd = min(missing_usd, left_usd)
        left_usd -= leased_usd
        return leased_usd

    return lease


class Budget:
    """The dollars of one run.

    Args:
        max_usd: most dollars to spend.
        model: the judge.
        price: of the model, in place of the known ones.
        price_share: of the list price, less than 1 where the provider gives a discount.
        lease: gets dollars from a budget that several machines or judges share; without it all of
            them may be spent here.

    Raises:
        UsageError: the model's price is not known.
    """

    def __init__(
        self,
        max_usd: float,
        model: str,
        price: OwnPrice | None = None,
        price_share: float = 1.0,
        lease: Lease | None = None,
    ) -> None:
        self.max_usd = max_usd
        self._lease = lease
        self._price_share = price_share
        self.spent_usd = 0.0
        # Less where several machines share the budget.
        self._allowed_usd = max_usd if lease is None else 0.0
        self._model = model
        self._price = price
        self._in_flight = 0
        # The prompt tokens of all requests in flight together.
        self._prompt_tokens_in_flight = 0
        self._expectation = _Expectation()
        # Questions whose latest request is in flight, or has a reply that is not read yet.
        self._unread: set[Permit] = set()
        self._refusal: str | None = None
        self._changed = asyncio.Event()
        if price_usd(Usage(input_tokens=1), model, price) is None:
            raise UsageError(
                f"max_cost cannot be kept: no price is known for model {model}; write the price "
                "into mind2web2.toml (in Python: Judge(price=...)), choose another model, or leave "
                "max_cost out"
            )

    @property
    def is_reached(self) -> bool:
        """Tell whether a request was refused; from then on all are."""
        return self._refusal is not None

    def permit(
        self, request: ChatRequest, limits: AnswerLimits, breaker: CircuitBreaker
    ) -> PaidPermit:
        """Return the permit of a question."""
        return PaidPermit(limits, breaker, self, request_tokens(request))

    async def enter(self, prompt_tokens: int) -> None:
        """Reserve the expected cost of a request, once there is room for it.

        Raises:
            BudgetReachedError: there will be none.
        """
        while True:
            expected_usd = self._expected_usd(prompt_tokens)
            left_usd = self._allowed_usd - self.spent_usd
            is_known = self._expectation.replies >= _ENOUGH_REPLIES
            caution = 1.0 if is_known else _CAUTION
            needed_usd = (self._reserved_usd() + expected_usd) * caution
            # Caution alone does not justify taking what other machines need.
            missing_usd = (needed_usd if caution == 1.0 else expected_usd) - left_usd
            if self._refusal is None and missing_usd > 0 and await self._extend(missing_usd):
                continue
            has_room = expected_usd <= left_usd
            # The first reply, which is not read yet, tells more than the guess.
            may_learn = bool(self._unread) and not self._expectation.replies
            if self._refusal is not None or not (has_room or may_learn):
                raise self._refusal_error(expected_usd)
            is_alone = has_room and not self._in_flight
            if is_alone or needed_usd <= left_usd:
                self._in_flight += 1
                self._prompt_tokens_in_flight += prompt_tokens
                return
            # No deadlock: requests in flight end within their time limit and wait for nothing here.
            await self._changed.wait()

    async def _extend(self, missing_usd: float) -> bool:
        """Try to allow more dollars, and return whether that succeeded."""
        if self._lease is None:
            return False
        leased_usd = await self._lease(missing_usd)
        self._allowed_usd += leased_usd
        return leased_usd > 0

    def leave(self, prompt_tokens: int, *, may_be_billed: bool) -> float:
        """Count and return the expected cost of an ended request, until its usage is known."""
        self._in_flight -= 1
        self._prompt_tokens_in_flight -= prompt_tokens
        assumed_usd = self._expected_usd(prompt_tokens) if may_be_billed else 0.0
        self.correct(assumed_usd)
        return assumed_usd

    def correct(self, spent_usd: float) -> None:
        """Add dollars, or subtract an excess, and wake the waiting requests."""
        self.spent_usd += spent_usd
        self._wake()

    def note_sent(self, permit: Permit) -> None:
        """Note that a question's request is in flight."""
        self._unread.add(permit)

    def note_read(self, permit: Permit) -> None:
        """Note that a question has no request in flight, and no reply that is not read."""
        if permit in self._unread:
            self._unread.remove(permit)
            self._wake()

    async def all_read(self) -> None:
        """Wait until no request is in flight, and the replies are read."""
        while self._unread:
            await self._changed.wait()

    def learn(self, prompt_tokens: int, usage: Usage) -> None:
        """Expect the next replies to be like this one."""
        self._expectation.learn(prompt_tokens, usage)

    def price(self, usage: Usage) -> float:
        """Return the price of these tokens."""
        price = price_usd(usage, self._model, self._price)
        return 0.0 if price is None else price * self._price_share

    def _expected_usd(self, prompt_tokens: int) -> float:
        return self.price(self._expectation.usage(prompt_tokens))

    def _reserved_usd(self) -> float:
        """Return the expected cost of the requests in flight, by the present expectation."""
        mean = -(-self._prompt_tokens_in_flight // max(self._in_flight, 1))
        return self._in_flight * self._expected_usd(mean)

    def _refusal_error(self, expected_usd: float) -> BudgetReachedError:
        if self._refusal is None:
            limit = f"max_cost {dollars_as_given(self.max_usd)}"
            self._refusal = f"{limit} is reached; the judge's replies so far are stored"
            if expected_usd > self.max_usd:
                self._refusal = (
                    f"the next request takes about {dollars(expected_usd)}, more than all of "
                    f"{limit}: give a higher one"
                )
            self._wake()
        return BudgetReachedError(self._refusal)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass(eq=False)
class PaidPermit(Permit):
    """The permit of one question whose requests cost dollars of a budget."""

    budget: Budget
    prompt_tokens: int
    _assumed_usd: float = field(default=0.0, init=False)

    async def __aenter__(self) -> None:
        # The reply to the question's latest request is read.
        self.budget.note_read(self)
        try:
            await super().__aenter__()
        except BudgetReachedError:
            # The error cancels the other questions of the answer: replies in flight are paid for.
            await self.budget.all_read()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The expected cost counts until the reply is read, or for good if it never is.
        assumed_usd = self.budget.leave(self.prompt_tokens, may_be_billed=_may_be_billed(error))
        if error is None:
            self._assumed_usd += assumed_usd
        else:
            self.budget.note_read(self)
        await super().__aexit__(kind, error, trace)

    async def _reserve(self) -> None:
        await self.budget.enter(self.prompt_tokens)
        self.budget.note_sent(self)

    def settle(self, usages: Sequence[Usage]) -> None:
        """Replace the estimates by the cost of each reply."""
        self.budget.note_read(self)
        # Replies without token counts are not free of charge.
        if not usages or not all(usage.input_tokens or usage.output_tokens for usage in usages):
            return
        # Later requests may be repairs, with a longer prompt.
        self.budget.learn(self.prompt_tokens, usages[0])
        spent_usd = sum(self.budget.price(usage) for usage in usages)
        self.budget.correct(spent_usd - self._assumed_usd)
        self._assumed_usd = 0.0


class _Expectation:
    """The expected tokens of a request, learned from the replies of the run."""

    def __init__(self) -> None:
        self.replies = 0
        self._input_ratio = 0.0
        self._output_sum = 0.0
        self._output_squares = 0.0

    def usage(self, prompt_tokens: int) -> Usage:
        """Return the expected tokens of a request, none of them cached."""
        if not self.replies:
            return Usage(input_tokens=prompt_tokens, output_tokens=_FIRST_OUTPUT_TOKENS)
        # The mean plus one standard deviation covers many requests; one long reply is a small
        # excess.
        mean = self._output_sum / self.replies
        deviation = math.sqrt(max(self._output_squares / self.replies - mean * mean, 0.0))
        return Usage(
            input_tokens=math.ceil(prompt_tokens * self._input_ratio),
            output_tokens=math.ceil(mean + deviation),
        )

    def learn(self, prompt_tokens: int, usage: Usage) -> None:
        """Add a reply."""
        self.replies += 1
        # The highest ratio: tokenizers differ, and too low an estimate would exceed the budget.
        self._input_ratio = max(self._input_ratio, usage.input_tokens / max(prompt_tokens, 1))
        self._output_sum += usage.output_tokens
        self._output_squares += usage.output_tokens**2


def _may_be_billed(error: BaseException | None) -> bool:
    """Tell whether a provider may charge for a request: not if it replied with an error."""
    return not isinstance(error, RequestFailedError) or error.is_timeout
