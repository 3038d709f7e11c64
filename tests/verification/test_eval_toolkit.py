"""Extractor and verifier as scripts use them without an Evaluator."""

import asyncio
import base64
import logging

import pytest
from evaluations import ANSWER, OTHER, PAGE, TASK, image, stored
from pydantic import BaseModel
from scripted_judge import ScriptedJudge

from mind2web2.rubric.node import VerificationNode
from mind2web2.scripts.limits import DualSemaphore
from mind2web2.verification.extractor import (
    EvaluatorConfig,
    Extractor,
    Verifier,
    create_evaluator,
)
from mind2web2.verification.script_access import as_judge

LOGGER = logging.getLogger("script")


class Town(BaseModel):
    """The template that a script extracts."""

    name: str | None = None


def pair(client, cache, llm_limit=None, **settings):
    """Return an extractor and a verifier."""
    return create_evaluator(
        client=client,
        task_description=TASK,
        answer=ANSWER,
        global_cache=cache,
        global_semaphore=DualSemaphore(asyncio.Semaphore(1), llm_limit or asyncio.Semaphore(1)),
        logger=LOGGER,
        **settings,
    )


def test_the_pair_logs_where_the_script_does():
    """Extractor first, verifier second."""
    extractor, verifier = pair(ScriptedJudge(), None)
    assert (type(extractor), type(verifier)) == (Extractor, Verifier)
    assert extractor.logger is verifier.logger is LOGGER


@pytest.mark.parametrize(
    ("settings", "models"),
    [
        ({}, ["o4-mini", "o4-mini"]),
        ({"default_model": "a"}, ["a", "a"]),
        ({"default_model": "a", "extract_model": "b"}, ["b", "a"]),
        ({"extract_model": "b", "verify_model": "c"}, ["b", "c"]),
    ],
)
async def test_models_may_be_named_apart(settings, models, tmp_path):
    """The default model does what has no model of its own."""
    client = ScriptedJudge([Town(), True])
    extractor, verifier = pair(client, stored(tmp_path), **settings)
    await extractor.simple_extract("which?", Town)
    await verifier.simple_verify("claim", num_trials=1)
    assert [question.model for question in client.questions] == models


async def test_a_claim_is_verified_from_the_answer(tmp_path):
    client = ScriptedJudge()
    _, verifier = pair(client, stored(tmp_path))
    leaf = VerificationNode(id="leaf", desc="")
    assert await verifier.simple_verify("claim", leaf, additional_instruction="be kind")
    assert await verifier.simple_verify("claim")
    assert (leaf.status, leaf.score) == ("passed", 1.0)
    assert "page" not in client.questions[0].blocks
    assert client.questions[0].blocks["extra instruction"] == "be kind"


async def test_a_claim_is_verified_against_pages(tmp_path):
    client = ScriptedJudge(lambda question: question.blocks["page address"] == OTHER)
    _, verifier = pair(client, stored(tmp_path))
    leaf = VerificationNode(id="leaf", desc="")
    assert not await verifier.verify_by_url("claim", PAGE, leaf, majority_vote=False)
    assert leaf.status == "failed"
    assert await verifier.verify_by_urls(
        "claim", [PAGE, OTHER], leaf, num_trials=1, use_screenshot=False
    )
    assert [question.blocks["page address"] for question in client.questions] == [
        PAGE,
        PAGE,
        OTHER,
    ]
    assert set(client.claims) == {"claim"}
    assert leaf.status == "passed"


async def test_prerequisites_hold_here_too(tmp_path):
    """A failed one skips the claim."""
    client = ScriptedJudge()
    _, verifier = pair(client, stored(tmp_path))
    leaf, failed = (
        VerificationNode(id="a", desc=""),
        VerificationNode(id="b", desc="", status="failed"),
    )
    assert not await verifier.simple_verify("claim", leaf, extra_prerequisites=[failed])
    assert (leaf.status, client.questions) == ("skipped", [])


async def test_templates_are_filled_from_answer_and_page(tmp_path):
    client = ScriptedJudge([Town(name="Aa"), Town(name="Bb")])
    extractor, _ = pair(client, stored(tmp_path))
    assert (await extractor.simple_extract("which?", Town, "be kind")).name == "Aa"
    page = await extractor.extract_from_url(
        "which?", PAGE, Town, additional_instruction="be strict", use_screenshot=False
    )
    assert page.name == "Bb"
    told = [question.blocks["extra instruction"] for question in client.questions]
    assert told == ["be kind", "be strict"]
    assert client.questions[1].blocks["page"] == "Depth: 80 m"


async def test_an_unavailable_page_gives_an_empty_template(tmp_path):
    """No question is asked."""
    extractor, _ = pair(ScriptedJudge([]), stored(tmp_path))
    assert await extractor.extract_from_url("which?", "https://lake.example/gone", Town) == Town()


def test_settings_have_the_published_defaults():
    """Each may be overridden on an instance."""
    published = {
        "max_text_chars": 400_000,
        "image_max_width": 1100,
        "image_max_height": 10000,
        "jpeg_quality": 85,
        "default_num_trials": 3,
        "default_majority_vote": True,
        "default_use_screenshot": True,
        "default_additional_instruction": "None",
    }
    config = EvaluatorConfig()
    assert {name: getattr(config, name) for name in published} == published
    config.max_text_chars = 10
    assert (
        config.page_settings().max_text_chars,
        EvaluatorConfig().max_text_chars,
    ) == (10, 400_000)
    assert EvaluatorConfig(**published) == EvaluatorConfig()


async def test_extractor_and_verifier_share_one_judge(tmp_path):
    judge = as_judge(ScriptedJudge([RuntimeError("boom")]))
    extractor, verifier = pair(judge, stored(tmp_path))
    with pytest.raises(Exception, match="boom"):
        await verifier.simple_verify("claim", num_trials=1)
    with pytest.raises(Exception, match="nothing more is asked"):
        await extractor.simple_extract("which?", Town)
    assert judge.failure is not None


async def test_scripts_read_pages_themselves(tmp_path):
    """Images as base64 JPEGs and the text; nothing of a page that is unavailable."""
    cache = stored(tmp_path)
    cache.put_web(PAGE, "Depth: 80 m", image())
    for asked in pair(ScriptedJudge(), cache):
        images, text = await asked.get_page_info(PAGE)
        assert text == "Depth: 80 m"
        assert [base64.b64decode(each)[:2] for each in images] == [b"\xff\xd8"]
        for url in ("https://lake.example/gone", "", "no url"):
            assert await asked.get_page_info(url) == (None, None)


async def test_scripts_send_requests_within_the_limits():
    """Text or a filled template; the semaphore is entered around each request."""
    client = ScriptedJudge(["a text", Town(name="Aa")])
    llm_limit = asyncio.Semaphore(1)
    extractor, verifier = pair(client, None, llm_limit)
    messages = [{"role": "user", "content": "Which town?"}]
    assert await extractor.call_llm_with_semaphore(model="m", messages=messages) == "a text"
    async with llm_limit:
        waiting = asyncio.create_task(
            verifier.call_llm_with_semaphore(model="m", messages=messages, response_format=Town)
        )
        await asyncio.wait({waiting}, timeout=0.01)
        assert len(client.questions) == 1
    assert (await waiting).name == "Aa"
