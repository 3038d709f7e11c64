"""What a run may cost: a request's price is reserved before it is sent and settled when its reply is in.

A request that no longer fits waits while others are with the judge, since they may turn out cheaper than
reserved; it is refused once the dollars that are truly spent leave no room for it. So the budget is used up,
and exceeded at most by what the requests under way cost above their estimates.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import lru_cache
from types import TracebackType
from typing import Any

from mind2web2.errors import BudgetReachedError, DocumentError, UsageError
from mind2web2.llm_client.chat import ChatRequest, Limit, Usage
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.prices import image_tokens, price_usd
from mind2web2.utils.images import size_px
from mind2web2.utils.text import dollars, dollars_as_given

# English text; other scripts have fewer characters a token, but more bytes a character.
BYTES_A_TOKEN = 4
# What a request has beside its texts: roles, and the form that the reply must fill.
_OVERHEAD_TOKENS = 150
# A part of a screenshot (PageSettings), for an image whose size cannot be told.
PART_SIZE_PX = (1100, 2000)
# Of the base64 text; the header of a JPEG as Pillow writes it takes a sixth of that.
_HEADER_CHARS = 4096


def text_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    size_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size_bytes // BYTES_A_TOKEN)


def request_tokens(request: ChatRequest) -> int:
    """Return about how many tokens a request has, images by the rule of its model."""
    tokens = _OVERHEAD_TOKENS
    for part in _parts(request):
        if part.get("type") == "image_url":
            tokens += image_tokens(request.model, *_image_size_px(part))
        else:
            tokens += text_tokens(str(part.get("text", "")))
    return tokens


def _parts(request: ChatRequest) -> Iterator[Mapping[str, Any]]:
    for message in request.messages:
        content = message.get("content")
        if isinstance(content, str):
            yield {"type": "text", "text": content}
        else:
            yield from content or ()


def _image_size_px(part: Mapping[str, Any]) -> tuple[int, int]:
    image = part.get("image_url")
    url = str(image.get("url", "") if isinstance(image, Mapping) else image)
    header, _, payload = url.partition(",") if url.startswith("data:") else ("", "", "")
    return _header_size_px(payload[:_HEADER_CHARS]) if header.endswith(";base64") else PART_SIZE_PX


@lru_cache(maxsize=256)
def _header_size_px(header: str) -> tuple[int, int]:
    try:
        return size_px(base64.b64decode(header))
    except (DocumentError, binascii.Error):
        return PART_SIZE_PX


# Of a reply, until the first ones are in: a short verdict, and the hidden reasoning before it.
_FIRST_OUTPUT_TOKENS = 1000
# Until so many replies have shown what requests really cost, estimates may be wrong by this factor: what is
# under way at once must fit into the budget even so. What waits for that in batch mode waits for a day.
_ENOUGH_REPLIES = 5
_CAUTION = 20.0
BATCH_CAUTION = 2.0


class Budget:
    """The dollars of one run.

    Args:
        max_usd: what may be spent.
        model: who is asked.
        price_share: of the list price, less than 1 where the provider gives a discount.
        caution: by what factor the estimates may be wrong, until the first replies are in.

    Raises:
        UsageError: the model's price is not known, so that no budget can be kept.
    """

    def __init__(
        self, max_usd: float, model: str, price_share: float = 1.0, caution: float = _CAUTION
    ) -> None:
        self.max_usd = max_usd
        self.spent_usd = 0.0
        self._model = model
        self._price_share = price_share
        self._caution = caution
        self._expectation = _Expectation()
        self._under_way = 0
        self._prompt_tokens_under_way = 0
        self._refusal: str | None = None
        self._changed = asyncio.Event()
        if price_usd(Usage(input_tokens=1), model) is None:
            raise UsageError(
                f"--max_cost cannot be kept: no price is known for model {model}; leave the option out, "
                "write the price into mind2web2.toml, or choose a model with a known price (--judge_model)"
            )

    @property
    def is_reached(self) -> bool:
        """Tell whether a request has been refused, from when on all are."""
        return self._refusal is not None

    def exchange(self, request: ChatRequest, limit: Limit) -> Exchange:
        """Return the limit to enter around each HTTP request of one question, to be settled with its reply.

        Args:
            limit: entered first.
        """
        return Exchange(self, request_tokens(request), limit)

    async def enter(self, prompt_tokens: int) -> None:
        """Set aside what a request of this length may cost, once there is room for it.

        Raises:
            BudgetReachedError: there will be none.
        """
        while True:
            expected_usd = self._expected_usd(prompt_tokens)
            left_usd = self.max_usd - self.spent_usd
            if self._refusal is not None or expected_usd > left_usd:
                raise self._refused(expected_usd)
            caution = 1.0 if self._expectation.replies >= _ENOUGH_REPLIES else self._caution
            if not self._under_way or (self._reserved_usd() + expected_usd) * caution <= left_usd:
                self._under_way += 1
                self._prompt_tokens_under_way += prompt_tokens
                return
            # Those under way end within a request's time limit, and hold nothing that is waited for here.
            await self._changed.wait()

    def leave(self, prompt_tokens: int, *, may_be_billed: bool) -> float:
        """Return the dollars that count for a request which has ended, until more is known of it."""
        self._under_way -= 1
        self._prompt_tokens_under_way -= prompt_tokens
        assumed_usd = self._expected_usd(prompt_tokens) if may_be_billed else 0.0
        self.correct(assumed_usd)
        return assumed_usd

    def correct(self, spent_usd: float) -> None:
        """Count dollars, or give back what was counted too much, and let whoever waits look again."""
        self.spent_usd += spent_usd
        self._wake()

    def learn(self, prompt_tokens: int, usage: Usage) -> None:
        """Expect the next replies to be like this one."""
        self._expectation.learn(prompt_tokens, usage)

    def price(self, usage: Usage) -> float:
        """Return what these tokens cost."""
        price = price_usd(usage, self._model)
        return 0.0 if price is None else price * self._price_share

    def _expected_usd(self, prompt_tokens: int) -> float:
        return self.price(self._expectation.usage(prompt_tokens))

    def _reserved_usd(self) -> float:
        """Return what is set aside, by what is known now and may not have been when the requests went out."""
        if not self._under_way:
            return 0.0
        return self._under_way * self._expected_usd(-(-self._prompt_tokens_under_way // self._under_way))

    def _refused(self, expected_usd: float) -> BudgetReachedError:
        if self._refusal is None:
            limit = f"--max_cost {dollars_as_given(self.max_usd)}"
            self._refusal = (
                f"the next request takes about {dollars(expected_usd)}, more than all of {limit}: "
                "give a higher one"
                if expected_usd > self.max_usd
                else f"{limit} is reached; what the judge has said is kept"
            )
            self._wake()
        return BudgetReachedError(self._refusal)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Exchange:
    """One question within the budget: a limit that is entered around each of its HTTP requests in turn."""

    def __init__(self, budget: Budget, prompt_tokens: int, limit: Limit) -> None:
        self._budget = budget
        self._prompt_tokens = prompt_tokens
        self._limit = limit
        self._assumed_usd: list[float] = []

    async def __aenter__(self) -> None:
        async with AsyncExitStack() as entered:
            await entered.enter_async_context(self._limit)
            await self._budget.enter(self._prompt_tokens)
            entered.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Until the reply is read, and for good where nobody reads it, the estimate counts.
        assumed_usd = self._budget.leave(self._prompt_tokens, may_be_billed=_may_be_billed(error))
        if error is None:
            self._assumed_usd.append(assumed_usd)
        await self._limit.__aexit__(kind, error, trace)

    def settle(self, usages: Sequence[Usage]) -> None:
        """Count what each reply of the exchange has cost, in place of what was assumed."""
        # A server that tells no tokens is not free of charge.
        if not usages or not all(usage.input_tokens or usage.output_tokens for usage in usages):
            return
        # What comes after the first may be a repair, with a longer prompt.
        self._budget.learn(self._prompt_tokens, usages[0])
        spent_usd = sum(self._budget.price(usage) for usage in usages)
        self._budget.correct(spent_usd - sum(self._assumed_usd))
        self._assumed_usd = []


class _Expectation:
    """What a request is expected to take, learned from the replies of the run."""

    def __init__(self) -> None:
        self.replies = 0
        self._input_ratio = 0.0
        self._mean_output = 0.0
        self._squares = 0.0

    def usage(self, prompt_tokens: int) -> Usage:
        """Return the tokens of a request; nothing of it is expected to be in the provider's cache."""
        if not self.replies:
            return Usage(input_tokens=prompt_tokens, output_tokens=_FIRST_OUTPUT_TOKENS)
        # One standard deviation above the mean is enough for many, while one long reply is a small excess.
        output = self._mean_output + math.sqrt(self._squares / self.replies)
        return Usage(
            input_tokens=math.ceil(prompt_tokens * self._input_ratio), output_tokens=math.ceil(output)
        )

    def learn(self, prompt_tokens: int, usage: Usage) -> None:
        """Take one more reply into account."""
        self.replies += 1
        # The highest yet: tokenizers and images differ, and too low an estimate would exceed the budget.
        self._input_ratio = max(self._input_ratio, usage.input_tokens / max(prompt_tokens, 1))
        away = usage.output_tokens - self._mean_output
        self._mean_output += away / self.replies
        self._squares += away * (usage.output_tokens - self._mean_output)


def _may_be_billed(error: BaseException | None) -> bool:
    """Tell whether a provider may charge for a request that ended so: not where it answered with an error."""
    return not isinstance(error, RequestFailedError) or isinstance(error.__cause__, TimeoutError)
