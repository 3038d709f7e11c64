"""Dollars for tokens, by the user's own prices or the list of ``genai-prices``.

No network is used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from mind2web2.llm_client.chat import OwnPrice, Usage

# Below every model's surcharge for long prompts, so that totals of many requests are priced as
# such.
_SAMPLE_TOKENS = 1000
# From here on some models charge more for all tokens of a prompt.
_SHORT_PROMPT_TOKENS = 32_000
# Some prices depend on the time of day.
_RATES_HOLD_S = 60

# Routers' prefixes of model names, and the providers whose price lists hold the models.
_PREFIXES = {
    "openai/": "openai",
    "azure/": "azure",
    "anthropic/": "anthropic",
    "bedrock/": "aws",
    "gemini/": "google",
    "google/": "google",
    "models/": "google",
}


# The prices from ``mind2web2.toml`` hold for the whole process, because ``calculate_api_cost``
# takes only the name of a model. The price of a run's own judge is an argument instead, because one
# process may have several runs.
_own_prices: dict[str, OwnPrice] = {}


def set_own_prices(prices: Mapping[str, OwnPrice]) -> None:
    """Set the user's own prices, which override the price list; earlier ones are removed."""
    _own_prices.clear()
    _own_prices.update(prices)
    _rates.cache_clear()


def own_prices() -> dict[str, OwnPrice]:
    """Return the user's own prices by model."""
    return dict(_own_prices)


def calculate_api_cost(input_tokens: int, output_tokens: int, model_name: str) -> float:
    """Return dollars for the tokens of any number of requests.

    Surcharges for very long prompts are not included.

    Raises:
        ValueError: the model's price is not known, or a number is negative.
    """
    if input_tokens < 0 or output_tokens < 0:
        raise ValueError(f"token counts cannot be negative: {input_tokens}, {output_tokens}")
    input_price = _price(Usage(input_tokens=_SAMPLE_TOKENS), model_name)
    output_price = _price(Usage(output_tokens=_SAMPLE_TOKENS), model_name)
    if input_price is None or output_price is None:
        raise ValueError(f"no price is known for model {model_name!r}")
    return float((input_price * input_tokens + output_price * output_tokens) / _SAMPLE_TOKENS)


def price_usd(usage: Usage, model_name: str, own: OwnPrice | None = None) -> float | None:
    """Return dollars for one request, or ``None`` for an unknown model.

    Cached tokens count at their price.

    Args:
        own: the price of this model, in place of the known ones.

    Some models charge more for all tokens of a very long prompt: for several requests add up
    dollars, not tokens.
    """
    if own is not None:
        return float(_by_own_price(usage, own))
    if usage.input_tokens >= _SHORT_PROMPT_TOKENS and model_name not in _own_prices:
        price = _price(usage, model_name)
        return None if price is None else float(price)
    rates = _rates(model_name, int(time.time() // _RATES_HOLD_S))
    return None if rates is None else float(rates.price(usage))


def total_price_usd(
    usages: Iterable[Usage],
    model_name: str,
    *,
    share: float = 1.0,
    own: OwnPrice | None = None,
) -> float | None:
    """Return dollars for several requests, each at its price, or ``None`` for an unknown model.

    Args:
        share: of the list price, less than 1 where the provider gives a discount.
    """
    total_usd = 0.0
    for usage in usages:
        price = price_usd(usage, model_name, own)
        if price is None:
            return None
        total_usd += price
    return total_usd * share


class _Rates(NamedTuple):
    """Dollars of a short request: for itself, and for each token by its kind."""

    request: Decimal
    fresh: Decimal
    cached: Decimal
    written: Decimal
    output: Decimal

    def price(self, usage: Usage) -> Decimal:
        """Return the same price as the price list, in a hundredth of the time."""
        cached, written = _cached_and_written(usage)
        return (
            self.request
            + self.fresh * (usage.input_tokens - cached - written)
            + self.cached * cached
            + self.written * written
            + self.output * usage.output_tokens
        )


@lru_cache(maxsize=64)
def _rates(model_name: str, period: int) -> _Rates | None:  # noqa: ARG001 (rates hold for a period)
    request = _price(Usage(), model_name)
    if request is None:
        return None
    count = _SAMPLE_TOKENS
    samples = (
        Usage(count),
        Usage(count, cached_tokens=count),
        Usage(count, cache_write_tokens=count),
        Usage(output_tokens=count),
    )
    prices = [_price(sample, model_name) or request for sample in samples]
    return _Rates(request, *((price - request) / count for price in prices))


def _cached_and_written(usage: Usage) -> tuple[int, int]:
    # A server's numbers may contradict each other.
    cached = min(usage.cached_tokens, usage.input_tokens)
    return cached, min(usage.cache_write_tokens, usage.input_tokens - cached)


def _price(usage: Usage, model_name: str) -> Decimal | None:
    if own := _own_prices.get(model_name):
        return _by_own_price(usage, own)
    cached, written = _cached_and_written(usage)

    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price  # a third of a second

    tokens = PricedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=usage.output_tokens,
    )
    for name, provider in _price_list_names(model_name):
        try:
            return calc_price(tokens, name, provider_id=provider).total_price
        except LookupError:
            continue
    return None


def _by_own_price(usage: Usage, own: OwnPrice) -> Decimal:
    cached, _ = _cached_and_written(usage)
    cached_usd = own.input_usd if own.cached_usd is None else own.cached_usd
    parts = (
        (usage.input_tokens - cached, own.input_usd),
        (cached, cached_usd),
        (usage.output_tokens, own.output_usd),
    )
    return sum((count * Decimal(str(usd)) for count, usd in parts), Decimal()) / 1_000_000


def _price_list_names(model_name: str) -> Iterator[tuple[str, str | None]]:
    """Yield the names and price lists under which a model may be found."""
    if "anthropic." in model_name:
        yield model_name.removeprefix("bedrock/"), "aws"
        return
    yield model_name, None
    for prefix, provider in _PREFIXES.items():
        if model_name.startswith(prefix):
            yield model_name.removeprefix(prefix), provider


# Models that count patches of 32 px, 1,536 at most, times a factor.
_PATCH_FACTORS = {
    "gpt-4.1-mini": 1.62,
    "gpt-4.1-nano": 2.46,
    "gpt-5-mini": 1.62,
    "gpt-5-nano": 2.46,
    "o4-mini": 1.72,
}
_PATCH_PX = 32
_MAX_PATCHES = 1536
# Models that count tiles of 512 px: tokens for the image and for each tile. The longest fitting
# name counts.
_TILE_PRICES = {
    "gpt-4o-mini": (2833, 5667),
    "gpt-5": (70, 140),
    "o1": (75, 150),
    "o3": (75, 150),
}
_USUAL_TILE_PRICE = (85, 170)
_TILE_PX = 512
_TILED_LONG_SIDE_PX = 2048
_TILED_SHORT_SIDE_PX = 768
# Claude counts pixels.
_CLAUDE_LONG_SIDE_PX = 1568
_CLAUDE_PX_A_TOKEN = 750


def image_tokens(model_name: str, width_px: int, height_px: int) -> int:
    """Return the tokens of an image of this size.

    A model without a rule counts tiles as GPT-4o does.
    """
    # Routers put names in front: openai/gpt-4o, us.anthropic.claude-...
    name = model_name.rpartition("/")[2]
    if "claude" in name:
        return _claude_tokens(width_px, height_px)
    patched = [model for model in _PATCH_FACTORS if name.startswith(model)]
    if patched:
        return _patch_tokens(width_px, height_px, _PATCH_FACTORS[patched[0]])
    tiled = sorted((model for model in _TILE_PRICES if name.startswith(model)), key=len)
    whole, tile = _TILE_PRICES[tiled[-1]] if tiled else _USUAL_TILE_PRICE
    return whole + tile * _tiles(width_px, height_px)


def _claude_tokens(width_px: int, height_px: int) -> int:
    scale = min(1.0, _CLAUDE_LONG_SIDE_PX / max(width_px, height_px))
    return math.ceil(width_px * scale * height_px * scale / _CLAUDE_PX_A_TOKEN)


def _patch_tokens(width_px: int, height_px: int, factor: float) -> int:
    patches = math.ceil(width_px / _PATCH_PX) * math.ceil(height_px / _PATCH_PX)
    return math.ceil(min(patches, _MAX_PATCHES) * factor)


def _tiles(width_px: int, height_px: int) -> int:
    scale = min(1.0, _TILED_LONG_SIDE_PX / max(width_px, height_px))
    scale *= min(1.0, _TILED_SHORT_SIDE_PX / (min(width_px, height_px) * scale))
    # rounded, as 767.9999 px and 768 px are one
    return math.ceil(round(width_px * scale) / _TILE_PX) * math.ceil(
        round(height_px * scale) / _TILE_PX
    )
