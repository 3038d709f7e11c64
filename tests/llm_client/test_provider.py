"""Which models take a temperature."""

import pytest

from mind2web2.llm_client.capabilities import is_reasoning_model


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("o1", True),
        ("o3-2025-04-16", True),
        ("o4-mini", True),
        ("openai/o4-mini-2025-04-16", True),
        ("O3-Mini", True),
        ("gpt-5", True),
        ("gpt-5-mini-2025-08-07", True),
        ("azure/gpt-5.1", True),
        ("openrouter/openai/gpt-5-nano", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("gpt-35-turbo", False),
        ("chatgpt-4o-latest", False),
        ("gpt-oss-120b", False),
        ("olmo-2", False),
        ("qwen/qwen3-32b", False),
        ("claude-sonnet-4-5", False),
    ],
)
def test_reasoning_models_are_known_by_name(model, expected):
    """Prefixes and dates do not hide a reasoning model, and similar names are none."""
    assert is_reasoning_model(model) is expected
