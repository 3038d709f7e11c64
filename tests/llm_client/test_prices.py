"""Prices of tokens, and tokens of images."""

import subprocess
import sys

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import calculate_api_cost, image_tokens, price_usd


def test_cost_is_that_of_the_price_list():
    """A million tokens each way of gpt-4o have OpenAI's price."""
    assert calculate_api_cost(1_000_000, 1_000_000, "gpt-4o") == pytest.approx(12.5)
    assert calculate_api_cost(0, 0, "gpt-4o") == 0


def test_dated_names_have_the_price_of_the_model():
    """A snapshot's name leads to its model."""
    assert calculate_api_cost(1000, 1000, "o4-mini-2025-04-16") == calculate_api_cost(
        1000, 1000, "o4-mini"
    )


def test_totals_cost_the_sum_of_their_requests():
    """A total of many requests is not taken for one very long prompt.

    Some models surcharge a very long prompt.
    """
    one = calculate_api_cost(10_000, 500, "gpt-5.4")
    assert calculate_api_cost(1_000_000, 50_000, "gpt-5.4") == pytest.approx(100 * one)


def test_unknown_models_have_no_price():
    """No price is made up: the published call raises, the other gives none."""
    with pytest.raises(ValueError, match="my-own-judge"):
        calculate_api_cost(1, 1, "my-own-judge")
    assert price_usd(Usage(1, 0, 1), "my-own-judge") is None
    assert price_usd(Usage(1, 0, 1), "") is None


def test_negative_counts_are_refused():
    """A negative number of tokens is an error."""
    with pytest.raises(ValueError, match="negative"):
        calculate_api_cost(-1, 1, "gpt-4o")


def test_cached_tokens_cost_less():
    """Cached tokens are part of the input and have their own price."""
    assert price_usd(Usage(1_000_000, 1_000_000, 0), "gpt-4o") == pytest.approx(1.25)
    assert price_usd(Usage(1_000_000, 0, 0), "gpt-4o") == pytest.approx(2.5)


@pytest.mark.parametrize("input_tokens", [0, 9000, 31_999, 32_000, 100_001, 300_000])
@pytest.mark.parametrize("name", ["o4-mini", "gpt-5.4", "claude-haiku-5-5", "gemini-1.5-flash"])
def test_each_request_has_the_price_of_the_list(name, input_tokens):
    """Rates remembered for short prompts make no difference.

    Surcharges for long prompts do not get lost either.
    """
    usage = Usage(input_tokens, input_tokens // 3, 700, cache_write_tokens=input_tokens // 5)
    listed = PricedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    assert price_usd(usage, name) == float(calc_price(listed, name).total_price)


def test_contradicting_counts_still_have_a_price():
    """More cached tokens than tokens, as a careless server may report, count as all cached."""
    assert price_usd(Usage(1000, 5000, 0), "gpt-4o") == price_usd(Usage(1000, 1000, 0), "gpt-4o")


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("anthropic/claude-opus-4-5", "claude-opus-4-5"),
        ("gemini/gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_prefixes_of_routers_are_understood(name, same_as):
    """A router's name of a model leads to its price."""
    assert calculate_api_cost(1000, 1000, name) == calculate_api_cost(1000, 1000, same_as)


def test_bedrock_names_have_prices():
    """Bedrock's names lead to Bedrock's prices, cache writes included."""
    name = "us.anthropic.claude-sonnet-4-20250514-v1:0"
    plain, written = Usage(10_000, 0, 0), Usage(10_000, 0, 0, cache_write_tokens=10_000)
    assert price_usd(plain, name) > 0
    assert price_usd(written, name) == pytest.approx(1.25 * price_usd(plain, name))


def test_prices_need_no_network():
    """The price list comes with the package: an unreachable network changes nothing."""
    code = (
        "import socket\n"
        "def refuse(*_): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from mind2web2.llm_client import calculate_api_cost\n"
        "print(calculate_api_cost(1000000, 0, 'gpt-4o'))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "2.5"


@pytest.mark.parametrize(
    ("model", "size_px", "tokens"),
    [
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-4o-2024-08-06", (512, 512), 255),
        ("openai/gpt-4o", (1024, 1024), 765),
        ("gpt-4o-mini", (1024, 1024), 2833 + 4 * 5667),
        ("o3", (1024, 1024), 75 + 4 * 150),
        ("o4-mini", (1024, 1024), 1762),
        ("o4-mini-2025-04-16", (1100, 2000), 2642),
        ("gpt-4.1-mini", (320, 320), 162),
        ("gpt-5-mini", (320, 320), 162),
        ("gpt-5", (512, 512), 210),
        ("us.anthropic.claude-sonnet-4-5", (1092, 1092), 1590),
        ("unheard-of", (512, 512), 255),
        ("gpt-4o", (1, 1), 255),
    ],
)
def test_an_image_has_the_tokens_of_the_provider(model, size_px, tokens):
    assert image_tokens(model, *size_px) == tokens
