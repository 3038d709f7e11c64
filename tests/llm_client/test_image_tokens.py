"""What images cost, by the examples that providers give."""

import pytest

from mind2web2.llm_client.prices import image_tokens


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
def test_an_image_costs_what_the_provider_says(model, size_px, tokens):
    """By patches, tiles or pixels."""
    assert image_tokens(model, *size_px) == tokens
