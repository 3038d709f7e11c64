"""A judge that judges answers of its own family of models."""

import json

import pytest

from mind2web2.results.cautions import family_of, own_family_caution


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-5-mini", "OpenAI"),
        ("o4-mini-2025-04-16", "OpenAI"),
        ("openrouter/anthropic/claude-sonnet-4-5", "Anthropic"),
        ("meta-llama/Llama-3.3-70B", "Meta"),
        ("Qwen/Qwen3-32B", "Alibaba"),
        ("my-finetune", None),
        ("solo3", None),
    ],
)
def test_names_tell_the_family(model, family):
    assert family_of(model) == family


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        ("gpt-5", "judges answers of its own model (gpt-5-search)"),
        ("o4-mini", "are of one family (OpenAI)"),
        ("claude-sonnet-4-5", None),
    ],
)
def test_a_judge_of_the_agents_family_is_named(tmp_path, judge, words):
    answer = tmp_path / "lake" / "answer_1.md"
    answer.parent.mkdir()
    answer.write_text("Deep.", encoding="utf-8")
    meta = json.dumps({"model": "gpt-5-search"})
    answer.with_suffix(".meta.json").write_text(meta, encoding="utf-8")
    caution = own_family_caution(tmp_path, {judge})
    assert caution is None if words is None else words in caution
