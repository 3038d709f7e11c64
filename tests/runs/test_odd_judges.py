"""Judges' servers as public bug reports describe them: the scores are right, or a message says why.

Each answer has three cited claims, one of which its page does not support.
"""

import json
import re
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from itertools import pairwise
from typing import Any

import pytest
from projects import AGENT, QUICK_RETRY, Project, block_in, call, entered, read_json
from servers.judge_server import (
    Body,
    Fault,
    JudgeServer,
    completion,
    content,
    prompt_text,
    rate_limited,
    status,
    truncated,
)

from mind2web2.cli import evaluate_main
from mind2web2.llm_client import connection

SCRIPT = """
from pydantic import BaseModel
class Item(BaseModel):
    sentence: str
    url: str
class Items(BaseModel):
    items: list[Item]
found = await evaluator.extract("Extract each item's sentence and the URL cited for it.", Items)
for n, item in enumerate(found.items):
    leaf = evaluator.add_leaf(f"item_{n}", "A cited page supports the sentence")
    await evaluator.verify(item.sentence, leaf, item.url)
return evaluator.get_summary()
"""
RIGHT = dict.fromkeys(("answer_1", "answer_2", "answer_3"), 0.67)
FILLER = "Nothing else of interest is written on this line of the page. " * 400

Quirk = Callable[[Body, Sequence[Body]], Fault | None]


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    monkeypatch.setattr(connection, "RetryPolicy", lambda **_: QUICK_RETRY)
    project = entered(tmp_path, monkeypatch)
    project.add_script_body(SCRIPT)
    for run in (1, 2, 3):
        said = [f"Item {item} of run {run} has code {1000 * run + item}." for item in (1, 2, 3)]
        urls = [f"https://pages.example/{run}/{item}" for item in (1, 2, 3)]
        lines = [f"- {each} [source]({url})" for each, url in zip(said, urls, strict=True)]
        project.add_answer(f"answer_{run}", "\n".join(lines))
        for each, url in zip(said, urls, strict=True):
            shown = each.replace("003.", "503.")
            project.cache().put_web(url, f"{FILLER}\n{shown}\n{FILLER}", None)
    return project


def evaluated(project: Project, quirk: Quirk, path: str = "/v1") -> tuple[dict[str, float], str]:
    """Return the answers' scores and what the command printed."""
    with JudgeServer(literal, faults=lambda body: quirk(body, server.requests)) as server:
        address = f"{server.url}{path}"
        options = ("--judge_base_url", address, "--judge_model", "m", "--no_capture")
        done = call(evaluate_main, AGENT, *options)
    scores = {
        stem: round(read_json(path)["final_score"], 2)
        for stem in RIGHT
        for path in project.result_paths(stem)
    }
    return scores, done.stdout + done.stderr


def literal(body: Body) -> dict[str, Any]:
    """Compare a claim with its page word for word."""
    text = prompt_text(body)
    claim, page = block_in(text, "claim"), block_in(text, "page") or ""
    if claim is None:
        pairs = re.findall(r"- (.*) \[source\]\((\S+)\)", block_in(text, "answer") or "")
        return {"items": [{"sentence": said, "url": url} for said, url in pairs]}
    return {"reasoning": "literal", "result": claim in page, "quote": claim * (claim in page)}


def claim_of(body: Body) -> str | None:
    return block_in(prompt_text(body), "claim")


def roles(body: Body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def is_new(body: Body, asked: Sequence[Body]) -> bool:
    return [prompt_text(each) for each in asked].count(prompt_text(body)) == 1


def always(fault: Fault) -> Quirk:
    return lambda _body, _asked: fault


def replying(**more: Any) -> Quirk:
    """Reply well; ``usage`` or ``message`` are odd."""
    return lambda body, _: Fault(body=completion(literal(body), **more))


def drafting(form: str) -> Quirk:
    """Write the opposite of each verdict as a draft, and perhaps the verdict after it."""

    def quirk(body: Body, _: Sequence[Body]) -> Fault | None:
        reply = literal(body)
        if "result" not in reply:
            return None
        opposite = {**reply, "result": not reply["result"], "quote": ""}
        return content(form.format(draft=json.dumps(opposite), verdict=json.dumps(reply)))

    return quirk


def alternating(body: Body, asked: Sequence[Body]) -> Fault | None:
    """Want user and assistant in turn, and leave each question's first reply empty."""
    sides = [role for role in roles(body) if role != "system"]
    if any(one == other for one, other in pairwise(sides)):
        words = "After the optional system message, conversation roles must alternate"
        return Fault(400, body={"object": "error", "message": words, "code": 400})
    return content("") if claim_of(body) and is_new(body, asked) else None


def without_system(words: str) -> Quirk:
    return lambda body, _: status(400, words) if "system" in roles(body) else None


def refusing_its_own_json(words: str, code: str) -> Quirk:
    def quirk(body: Body, asked: Sequence[Body]) -> Fault | None:
        is_due = is_new(body, asked) and len(asked) % 3 == 1
        return status(400, words, code=code) if is_due else None

    return quirk


def dropping_the_front(counted: int) -> Quirk:
    """Drop what does not fit, and count what is left, as Ollama does."""

    def quirk(body: Body, _: Sequence[Body]) -> Fault | None:
        if len(prompt_text(body)) < 4 * 4096:
            return None
        reply = {"reasoning": "I see no such page.", "result": False, "quote": ""}
        return Fault(body=completion(reply, usage={"prompt_tokens": counted}))

    return quirk


def stopping(reply: Body) -> Quirk:
    """Reply about one claim that a filter stopped it."""

    def quirk(body: Body, _: Sequence[Body]) -> Fault | None:
        is_stopped = "Item 2 of run 1" in (claim_of(body) or "")
        return Fault(body=reply) if is_stopped else None

    return quirk


def refusing_by_its_clock(ahead_s: float) -> Quirk:
    """Refuse the first requests; the date from when on they may come is by another clock."""

    def quirk(_: Body, asked: Sequence[Body]) -> Fault | None:
        now = time.time() + ahead_s
        dates = {"Date": formatdate(now, usegmt=True), "Retry-After": formatdate(now, usegmt=True)}
        return rate_limited(**dates) if len(asked) < 4 else None

    return quirk


def resetting(unit: float) -> Quirk:
    """Let four requests in a second, and say the reset as a time since 1970."""

    def quirk(body: Body, asked: Sequence[Body]) -> Fault:
        headers = {
            "x-ratelimit-limit-requests": "4",
            "x-ratelimit-remaining-requests": str(3 - len(asked) % 4),
            "x-ratelimit-reset-requests": str(int((time.time() + 1) * unit)),
        }
        return Fault(headers=headers, content=literal(body))

    return quirk


def elsewhere(place: str, reply_in: Callable[[str], Any] = str) -> Quirk:
    """Write the reply in another place than the text."""

    def quirk(body: Body, _: Sequence[Body]) -> Fault:
        message = {"content": None, place: reply_in(json.dumps(literal(body)))}
        return Fault(body=completion("", message=message))

    return quirk


def call_of(arguments: str) -> Body:
    return {"name": "json_tool_call", "arguments": arguments}


def unpaid(**body: Any) -> Quirk:
    """Say with status 200 that nothing is paid."""
    return always(Fault(body=body))


BALANCE = "please top up your balance"
FENCED = "```json\n{draft}\n```\n"
NO_SYSTEM = "'messages[0].role' does not support 'system' with this model."
NO_JSON = "Failed to generate JSON. Please adjust your prompt."
PIECE = 'data: {"choices": [{"index": 0, "delta": {"content": "x"}}]}\n\ndata: [DONE]\n\n'
CASES: dict[str, tuple[Quirk, str | None]] = {
    # The scores are right.
    "plain": (replying(), None),
    "a draft in thinking": (drafting(f"<think>{FENCED}</think>{{verdict}}"), None),
    "a draft before an end of thinking": (drafting(f"{FENCED}</think>{{verdict}}"), None),
    "roles must alternate": (alternating, None),
    "no system role": (without_system("System role not supported"), None),
    "no system role, as o1 says it": (without_system(NO_SYSTEM), None),
    "no system role, in other words": (without_system("Unexpected role 'system'"), None),
    "its own JSON refused": (refusing_its_own_json(NO_JSON, "json_validate_failed"), None),
    "token details as a list": (
        replying(usage={"prompt_tokens": 9, "prompt_tokens_details": [], "total_tokens": 9}),
        None,
    ),
    "tokens as texts": (replying(usage={"prompt_tokens": "9", "total_tokens": "9"}), None),
    "no tokens": (replying(usage=None), None),
    "a clock ahead": (refusing_by_its_clock(3600), None),
    "a clock behind": (refusing_by_its_clock(-3600), None),
    "a reset as an epoch": (resetting(1), None),
    "a reset as an epoch in ms": (resetting(1000), None),
    # There is no score, and these words say why.
    "a draft in thinking without an end": (drafting(f"<think>{FENCED}Wait: The"), "cut off"),
    "a draft in reasoning without an end": (drafting(f"<reasoning>{FENCED}No"), "cut off"),
    "a draft that is taken back": (drafting(f"{FENCED}Wait, that is wrong."), "not the requested"),
    "a draft and another fence": (drafting(f"{FENCED}No:\n{FENCED}"), "not the requested"),
    "cut at the front": (dropping_the_front(2050), "OLLAMA_CONTEXT_"),
    "cut at the front, another size": (dropping_the_front(4095), "OLLAMA_CONTEXT_"),
    "an error as detail": (unpaid(detail=BALANCE), BALANCE),
    "an error as msg": (unpaid(code=402, msg=BALANCE, data=None), BALANCE),
    "an error as a text": (unpaid(error=BALANCE), BALANCE),
    "an error in a list": (unpaid(errors=[{"message": BALANCE}]), BALANCE),
    "an error as no success": (unpaid(success=False, message=BALANCE), BALANCE),
    "an error as an object": (
        unpaid(object="error", message="This model's maximum context length is 10 tokens."),
        "maximum context length",
    ),
    "an error in base_resp": (unpaid(base_resp={"status_msg": BALANCE}), BALANCE),
    "another endpoint": (
        unpaid(error="Unexpected endpoint or method."),
        "no such model or address",
    ),
    "a page": (always(Fault(body="<html>Login</html>")), "not a completion but '<html>Login"),
    "in reasoning_content": (elsewhere("reasoning_content"), "its reasoning_content"),
    "in reasoning": (elsewhere("reasoning"), "its reasoning"),
    "in thinking": (elsewhere("thinking"), "its thinking"),
    "in a tool call": (
        elsewhere("tool_calls", lambda text: [{"id": "c1", "function": call_of(text)}]),
        "for a tool call",
    ),
    "in a function call": (elsewhere("function_call", call_of), "for a tool call"),
    "all tokens spent on reasoning": (
        always(Fault(body=completion("", "length", message={"reasoning": "So. " * 900}))),
        "max_tokens",
    ),
    "16 tokens": (lambda body, _: truncated(json.dumps(literal(body))[:64]), "max_tokens"),
    "a stream": (always(Fault(body=PIECE)), "event stream"),
    "a stream with comments": (always(Fault(body=f": ping\n\n{PIECE}")), "event stream"),
    "a stream with events": (always(Fault(body=f"event: x\n{PIECE}")), "event stream"),
}


@pytest.mark.parametrize("name", CASES)
def test_scores_are_right_or_a_message_says_why_there_are_none(project, name):
    quirk, words = CASES[name]
    scores, printed = evaluated(project, quirk)
    assert scores == ({} if words else RIGHT), printed
    assert (words or "") in printed


STOPPED = {
    "SAFETY": completion("", "SAFETY"),
    "the verdict and SAFETY": completion({"reasoning": "r", "result": True}, "SAFETY"),
    "RECITATION": completion("", "RECITATION"),
    "content_filter": completion("", "content_filter"),
    "a name within": completion("", "content_filter: PROHIBITED_CONTENT"),
    "sensitive": completion("", "sensitive"),
    "the prompt": {"choices": [], "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_claim_that_a_filter_stops_fails(project, name):
    scores, printed = evaluated(project, stopping(STOPPED[name]))
    assert scores == {**RIGHT, "answer_1": 0.33}, printed


@pytest.mark.parametrize("path", ["", "/", "/v2"])
def test_an_address_without_v1_is_corrected(project, path):
    scores, printed = evaluated(project, always(status(404, "Not Found")), path)
    assert (scores, "did you mean http://127.0.0.1:" in printed) == ({}, path != "/v2")
