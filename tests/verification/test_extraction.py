"""Filling templates from the answer or a page, and what stands for nothing."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import pytest
from evaluations import PAGE, TextCache, started, stored
from pydantic import BaseModel, Field, HttpUrl
from scripted_judge import ScriptedJudge

from mind2web2.errors import (
    ContextTooLongError,
    JudgeDeclinedError,
    JudgeError,
    JudgeOutputError,
    PageBugError,
)
from mind2web2.rubric.verdicts import Rejection
from mind2web2.verification.extractor import empty_instance
from mind2web2.verification.script_access import as_judge

GONE = "https://lake.example/gone"


class Place(BaseModel):
    """A template within a template."""

    name: str
    address: str | None


class Form(BaseModel):
    """Every kind of field that scripts use."""

    title: str
    note: str | None
    count: int
    day: float | None = None
    urls: list[str]
    more: list[Place] = Field(default_factory=list)
    table: dict[str, str]
    place: Place
    second: Place | None
    link: HttpUrl
    kind: Literal["a", "b"]
    either: int | str
    anything: Any
    renamed: str = Field(alias="other name")
    unit: str = "m"


class Town(BaseModel):
    """A template in which everything may be absent."""

    name: str | None = None
    urls: list[str] = Field(default_factory=list)


def test_an_empty_instance_holds_nothing():
    """Optional fields are None, lists empty, required strings ``""``; defaults stand."""
    form = empty_instance(Form)
    assert isinstance(form, Form)
    assert (form.title, form.renamed, form.unit) == ("", "", "m")
    assert (form.note, form.day, form.second, form.link, form.count, form.anything) == (None,) * 6
    assert (form.urls, form.more, form.table) == ([], [], {})
    assert (form.place.name, form.place.address) == ("", None)


def test_empty_instances_share_nothing():
    """Scripts append to the lists they are given."""
    first, second = empty_instance(Form), empty_instance(Form)
    first.urls.append("x")
    first.more.append(first.place)
    assert (second.urls, second.more) == ([], [])


class Row(BaseModel):
    """A template whose fields pydantic fills with iterators."""

    cells: Iterable[str]


class Table(BaseModel):
    """Rows in each place where a template may have them."""

    rows: Iterable[Row]
    listed: list[Row]
    named: dict[str, Row]
    counts: Counter[str]
    last: Row | None


async def test_iterables_can_be_read_more_than_once():
    """The result shows them, and the script reads them after that."""
    row = {"cells": ["a", "b"]}
    reply = {"rows": [row], "listed": [row], "named": {"one": row}, "counts": {"a": 2}, "last": row}
    evaluator = started(ScriptedJudge(lambda question: question.template.model_validate(reply)))
    table = await evaluator.extract("Which rows?", Table)
    assert evaluator.get_summary()["eval_breakdown"][0]["info"] == [{"extraction": reply}]
    rows = [*table.rows, *table.listed, *table.named.values(), table.last]
    assert [list(each.cells) for each in rows] == [["a", "b"]] * 4
    assert table.counts == {"a": 2}


async def test_the_answer_is_read_without_a_source():
    """The template, the prompt, the model and an instruction reach the judge; no page does."""
    judge = ScriptedJudge(Town(name="Aa"))
    evaluator = started(judge, extract_model="judge-2")
    assert await evaluator.extract(
        "Which town?", Town, additional_instruction="First one."
    ) == Town(name="Aa")
    (question,) = judge.questions
    assert (question.template, question.model) == (Town, "judge-2")
    told = {"what to extract": "Which town?", "extra instruction": "First one."}
    assert told.items() <= question.blocks.items()
    assert set(question.blocks) == {"task", "answer", *told}


async def test_a_page_is_read_where_one_is_named(tmp_path):
    judge = ScriptedJudge(Town(name="Aa"))
    evaluator = started(judge, stored(tmp_path))
    await evaluator.extract("Which town?", Town, "town", PAGE, use_screenshot=False)
    assert judge.questions[0].blocks["page"] == "Depth: 80 m"
    (record,) = evaluator.get_summary()["extractions"]
    assert (record["name"], record["url"]) == ("town", PAGE)
    assert (record["page"]["text_chars"], record["page"]["kind"]) == (11, "web")


@pytest.mark.parametrize("source", [[PAGE], (), [], 3, HttpUrl(PAGE), {"url": PAGE}, False])
async def test_anything_but_a_url_is_refused(source, tmp_path):
    judge = ScriptedJudge(Town())
    evaluator = started(judge, stored(tmp_path))
    with pytest.raises(ValueError, match="one URL"):
        await evaluator.extract("Which town?", Town, source=source)
    assert judge.questions == []
    assert evaluator.get_summary()["eval_breakdown"][0]["info"] == [
        {"no_info": "No information recorded"}
    ]


@pytest.mark.parametrize("source", [GONE, "no url at all", "", " "])
async def test_an_unavailable_page_gives_an_empty_instance(source, tmp_path):
    """No judge is asked, and the record says why; the summary can still be written."""
    judge = ScriptedJudge([])
    evaluator = started(judge, stored(tmp_path))
    form = await evaluator.extract("All of it", Form, source=source)
    assert (form.title, form.urls, form.place.name) == ("", [], "")
    summary = evaluator.get_summary()
    assert summary["eval_breakdown"][0]["info"][0]["extraction"]["title"] == ""
    reason = (
        "not in the cache, and this run captures no pages"
        if source.strip()
        else "the sources given name no page"
    )
    assert summary["extractions"] == [{"name": "extraction", "url": source, "unavailable": reason}]


async def test_content_declined_twice_gives_an_empty_instance():
    client = ScriptedJudge(JudgeDeclinedError("content filter"))
    judge = as_judge(client)
    evaluator = started(judge)
    assert (await evaluator.extract("All of it", Form, "form")).title == ""
    assert len(client.questions) == 2
    assert judge.ledger.rejections == [Rejection("form", None, "content filter")]
    assert evaluator.get_summary()["extractions"] == [
        {"name": "form", "declined": "content filter"}
    ]


@pytest.mark.parametrize(
    "failure", [JudgeError("down"), RuntimeError("down"), JudgeOutputError("down")]
)
async def test_a_judge_that_fails_is_no_empty_extraction(failure):
    evaluator = started(ScriptedJudge(failure))
    with pytest.raises(JudgeError, match="down"):
        await evaluator.extract("Which?", Town)
    with pytest.raises(JudgeError, match="down"):
        evaluator.get_summary()


async def test_an_extraction_that_raises_leaves_no_record():
    """A script may swallow the error; the summary then holds nothing of it."""

    class Broken(TextCache):
        def has(self, _url):
            raise RuntimeError("bug")

    evaluator = started(cache=Broken("text"))
    with pytest.raises(PageBugError, match="bug"):
        await evaluator.extract("Which?", Town, source=PAGE)
    summary = evaluator.get_summary()
    assert summary["eval_breakdown"][0]["info"] == [{"no_info": "No information recorded"}]
    assert summary["extractions"] == []


async def test_a_page_too_long_is_halved(tmp_path):
    judge = ScriptedJudge([ContextTooLongError("too long"), Town(name="Aa")])
    evaluator = started(judge, stored(tmp_path, depth="x" * 100))
    await evaluator.extract("Which?", Town, source=PAGE)
    page = evaluator.get_summary()["extractions"][0]["page"]
    assert (page["text_chars"], page["text_chars_stored"]) == (50, 100)


async def test_extractions_are_listed_in_the_order_of_their_calls(tmp_path):
    judge = ScriptedJudge(lambda question: Town(name=question.blocks["what to extract"]))
    evaluator = started(judge, stored(tmp_path))
    slow = evaluator.extract("first", Town, "a", PAGE)
    quick = [evaluator.extract(name, Town, name) for name in ("b", "c")]
    await asyncio.gather(slow, *quick)
    summary = evaluator.get_summary()
    assert [next(iter(entry)) for entry in summary["eval_breakdown"][0]["info"]] == [
        "a",
        "b",
        "c",
    ]
    assert [record["name"] for record in summary["extractions"]] == ["a", "b", "c"]
