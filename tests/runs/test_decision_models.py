"""A decision model as the first of two judges: one request for a page, probabilities in place of votes."""

import asyncio
import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from projects import ANSWER, block_in, call, claim_in, entered, read_json
from servers.decision_server import DecisionServer
from servers.judge_server import JudgeServer, prompt_text
from servers.local_http import Answer

from mind2web2 import Judge, Scorer
from mind2web2.cli import evaluate_main, main
from mind2web2.errors import UsageError
from mind2web2.judge.decision_client import DecisionClient
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.judge_check.drawn_page import screenshot
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import price_usd
from mind2web2.runs.results import latest_result
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.keys import AnswerKey
from mind2web2.viewer.stored_pages import StoredPages

LUNA, STRONG = "gpt-6-luna", "gpt-4o"
PAGE = "https://lake.example/"
TEXT = "The lake is deep and cold. " * 20
PROBABILITIES = {"sure": 0.98, "failed": 0.03, "unsure": 0.6, "refused": None}
SCRIPT = f"""
for name in {[*PROBABILITIES, "gate"]!r}:
    leaf = evaluator.add_leaf(name, "", critical=name == "gate")
    await evaluator.verify(f"The lake is {{name}}.", leaf, {PAGE!r})
return evaluator.get_summary()
"""


def named(claim):
    """Return what a claim says of the lake."""
    return claim.removeprefix("The lake is ").rstrip(".")


def probability(claim):
    """Return the decision model's reply."""
    return PROBABILITIES.get(named(claim), 0.99)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with one answer that cites one page, in which commands run.

    Claims are collected for longer than usual, so that a busy machine's are in one request too.
    """
    monkeypatch.setitem(DecisionClient.__init__.__kwdefaults__, "quiet_s", 1.0)
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script_body(SCRIPT)
    project.cache().put_web(PAGE, TEXT, None)
    return project


@pytest.fixture
def strong():
    """Return the server of the strong judge, which supports every claim."""
    reply = {"reasoning": "strong", "result": True, "quote": "deep and cold"}
    with JudgeServer(reply=reply) as server:
        yield server


def judged(strong, decisions, *more, prefix="decisions"):
    """Evaluate with the decision model first, and return the command's result."""
    cascade = f"{prefix}:{LUNA}@{decisions.base_url},{STRONG}"
    server = ("--judge_base_url", strong.base_url)
    return call(evaluate_main, "bot", *server, "--judge_cascade", cascade, *more)


def leaves_of(project):
    """Return each leaf of the newest result by its id."""
    result = latest_result(project.folder() / "results").content
    return {leaf.id: leaf for leaf in result.leaves()}


def asked_of(strong):
    """Return how often the strong judge was asked about each claim."""
    return Counter(named(claim_in(prompt_text(body))) for body in strong.requests)


@pytest.mark.parametrize("prefix", ["decisions", "systemone"])
def test_one_request_decides_the_claims_of_a_page_that_are_not_in_doubt(
    project, strong, prefix
):
    """The strong judge has the gate, and what has no clear probability; the evidence says who decided."""
    with DecisionServer(probability) as decisions:
        done = judged(strong, decisions, prefix=prefix)
    assert done.returncode == 0, done.stderr
    (request,) = decisions.requests
    assert TEXT.strip() in request.state
    assert sorted(map(named, request.claims)) == sorted(PROBABILITIES)
    assert asked_of(strong) == {"unsure": 2, "refused": 2, "gate": 2}
    leaves = leaves_of(project)
    passed = {name for name, leaf in leaves.items() if leaf.verdict.status == "passed"}
    assert passed == {"sure", "unsure", "refused", "gate"}
    (check,) = leaves["failed"].evidence.pages
    assert (check.judge, check.votes[0].probability) == (LUNA, 0.03)
    assert check.votes[0].reasoning.startswith("decided without quotation")
    (check,) = leaves["unsure"].evidence.pages
    assert (check.judge, check.first_votes[0].probability) == (STRONG, 0.6)
    assert leaves["unsure"].evidence.confidence == 0.9
    verified = call(main, "verify-results", "bot")
    assert verified.returncode == 0, verified.stdout
    shown = call(main, "show", "bot", "lake", "answer_1").stdout
    assert f"{LUNA}: no: decided without quotation, probability 0.030" in shown
    assert "First judge, in doubt: refused to answer" in shown
    record = read_json(project.result_paths()[-1])["provenance"]["judge"]
    assert (record["first_model"], record["confidence"]) == (LUNA, 0.9)
    metrics = " ".join(call(main, "metrics", "bot").stdout.split())
    assert f"with {LUNA} first (gates confidence=0.9)" in metrics
    assert call(main, "export", "bot", "-o", "leaves.csv").returncode == 0
    with Path("leaves.csv").open(encoding="utf-8") as file:
        quotations = {row["leaf"]: row["quotation"] for row in csv.DictReader(file)}
    assert (quotations["sure"], quotations["unsure"]) == ("without", "found")


def test_tokens_are_shared_and_nothing_is_asked_or_paid_twice(project, strong):
    """Shares add up to what a request was billed; a stored judgment counts whoever was asked beside it."""
    with DecisionServer(probability, tokens=1003) as decisions:
        assert judged(strong, decisions).returncode == 0
        with JudgmentStore(project.results / FILE_NAME) as store:
            stored = [each for each in store.all() if each.model == LUNA]
        assert sum(each.input_tokens for each in stored) == 1007
        assert [each.together for each in stored] == [4] * 4
        assert sum(each.attempts for each in stored) == 1
        again = judged(strong, decisions, "--judge_doubt", "signs")
        assert again.returncode == 0, again.stderr
    assert list(map(len, decisions.asked_together)) == [4, 1], "only the gate is new"
    assert f"Judges: {LUNA} (openai_decisions {decisions.base_url})" in again.stdout
    assert "(signs, and where its probability was not above 0.9)" in again.stdout


def test_a_replay_needs_no_decision_model(project, strong):
    """It finds each judgment by its claim and page, and its result holds."""
    with DecisionServer(probability) as decisions:
        assert judged(strong, decisions).returncode == 0
    before = {name: leaf.verdict for name, leaf in leaves_of(project).items()}
    cascade = ("--judge_cascade", f"decisions:{LUNA},{STRONG}")
    replayed = call(evaluate_main, "bot", "--llm_provider", "replay", *cascade)
    assert replayed.returncode == 0, replayed.stderr
    assert len(project.result_paths()) == 2
    assert {name: leaf.verdict for name, leaf in leaves_of(project).items()} == before
    verified = call(main, "verify-results", "bot")
    assert verified.returncode == 0, verified.stdout


TWO_STEPS = f"""
import asyncio
gate, more, other, dependent = (
    evaluator.add_leaf(name, "", critical=False)
    for name in ("gate", "more", "other", "dependent")
)
await asyncio.gather(
    evaluator.verify("The lake is failed.", gate, {PAGE!r}),
    evaluator.verify("The lake is sure.", more, {PAGE!r}),
    evaluator.verify("The lake is sure.", other, {PAGE!r}),
)
await asyncio.gather(
    evaluator.verify("The lake is wet.", dependent, {PAGE!r}, extra_prerequisites=[gate])
)
return evaluator.get_summary()
"""


def test_a_replay_with_another_confidence_is_the_run_with_it(project, strong):
    """It skips what that run skips, not what the recorded one skipped, and says which judgment it lacks."""
    project.add_script_body(TWO_STEPS)
    cascade = ("--judge_cascade", f"decisions:{LUNA},{STRONG}", "--judge_confidence")
    replay = ("--llm_provider", "replay", *cascade)
    with DecisionServer(lambda claim: 0.3 if "failed" in claim else 0.97) as decisions:
        assert judged(strong, decisions).returncode == 0
        assert statuses(project) == "passed passed passed passed"
        replayed = call(evaluate_main, "bot", *replay, "0.5")
        assert replayed.returncode == 0, replayed.stderr
        assert statuses(project) == "failed passed passed skipped"
        assert call(main, "verify-results", "bot").returncode == 0
        lacking = call(evaluate_main, "bot", *replay, "0.99")
        assert lacking.returncode == 1
        assert "no stored judgment on claim 'The lake is sure.'" in lacking.stdout
        done = judged(strong, decisions, "--judge_confidence", "0.5")
        assert done.returncode == 0, done.stderr
    assert statuses(project) == "failed passed passed skipped"


def statuses(project):
    """Return the status of each leaf of the newest result, in the script's order."""
    return " ".join(leaf.verdict.status for leaf in leaves_of(project).values())


@pytest.mark.parametrize("prefix", ["decisions", "systemone"])
@pytest.mark.parametrize(
    ("text", "is_shown", "decided"),
    [
        ("Cold.", None, False),
        ("Cold.", "picture", True),
        (TEXT, "picture", True),
        (TEXT * 1000, None, False),
    ],
    ids=["empty page", "picture alone", "text and picture", "cut text"],
)
def test_what_it_cannot_read_is_for_the_strong_judge(
    project, strong, prefix, text, is_shown, decided
):
    """A cut page, and one with next to no text, unless the protocol shows its picture."""
    picture = None if is_shown is None else screenshot("The lake is deep.", None)
    project.cache().put_web(PAGE, text, picture)
    project.add_script({"sure": ("The lake is sure.", PAGE)})
    with DecisionServer(lambda _claim: 0.99) as decisions:
        done = judged(strong, decisions, "--judge_doubt", "split", prefix=prefix)
    assert done.returncode == 0, done.stderr
    (asked,) = decisions.requests
    assert asked.images == (prefix == "decisions" and picture is not None)
    if text == "Cold." and prefix == "systemone":
        decided = False
    (check,) = leaves_of(project)["sure"].evidence.pages
    assert (check.judge == LUNA) is decided


def test_claims_on_the_answer_are_asked_with_task_and_answer(project, strong):
    """Those on a page are asked without the answer, which is no evidence for them."""
    project.add_script(
        {"here": ("The lake is here.", None), "page": ("The lake is wet.", PAGE)}
    )
    with DecisionServer(lambda _claim: 0.99) as decisions:
        assert judged(strong, decisions).returncode == 0
    states = {named(asked.claims[0]): asked.state for asked in decisions.requests}
    assert block_in(states["here"], "answer") == ANSWER
    assert block_in(states["wet"], "answer") is None
    assert block_in(states["wet"], "page").strip() == TEXT.strip()
    assert not strong.requests


def test_extractions_go_to_the_strong_judge(project):
    """A decision model fills no form."""
    project.add_script_body(
        """
from pydantic import BaseModel
class Lake(BaseModel):
    name: str
lake = await evaluator.extract("the lake", Lake)
leaf = evaluator.add_leaf("leaf", "")
await evaluator.verify(f"The lake is {lake.name}.", leaf, None)
return evaluator.get_summary()
"""
    )
    with (
        DecisionServer(lambda _claim: 0.99) as decisions,
        JudgeServer({"name": "Tarn"}) as own,
    ):
        assert judged(own, decisions).returncode == 0
    assert decisions.claims == ["The lake is Tarn."]
    assert len(own.requests) == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Answer(b'{"answers": 7}'), "could not be read, 3 times"),
        (Answer(b'{"error": {"message": "wrong key"}}', 401), "OPENAI_API_KEY"),
    ],
)
def test_a_failure_of_the_decision_model_is_no_verdict(project, strong, fault, reason):
    """The answer has no result, although the strong judge could be asked: the score would be another one."""
    with DecisionServer(probability, faults=[fault] * 9) as decisions:
        done = judged(strong, decisions)
    assert done.returncode != 0
    assert reason in done.stdout + done.stderr
    assert not project.result_paths()


def test_lookahead_collects_the_claims_behind_a_gate(project, strong):
    """They are asked in one request while the gate is undecided."""
    project.add_script_body(
        f"""
gate = evaluator.add_leaf("gate", "", critical=True)
await evaluator.verify("The lake is a gate.", gate, {PAGE!r})
for name in "abc":
    leaf = evaluator.add_leaf(name, "")
    await evaluator.verify(f"The lake is {{name}}.", leaf, {PAGE!r})
return evaluator.get_summary()
"""
    )
    with DecisionServer(lambda _claim: 0.99) as decisions:
        done = judged(strong, decisions, "--ahead", "gates")
    assert done.returncode == 0, done.stderr
    assert [list(map(named, claims)) for claims in decisions.asked_together] == [
        ["a", "b", "c"]
    ]


def test_both_share_the_budget(project, strong):
    """The decision model is paid by the request, the strong one by the question."""
    with DecisionServer(probability, tokens=996) as decisions:
        done = judged(strong, decisions, "--max_cost", "1")
    assert done.returncode == 0, done.stderr
    usage = read_json(project.results / "usage.json")["newest_run"]["asked"]
    of_strong = len(strong.requests) * (40 * 2.5 + 60 * 1.25 + 100) / 1e6
    of_luna = price_usd(Usage(input_tokens=1000), LUNA)
    assert usage["cost_usd"] == pytest.approx(of_strong + of_luna, abs=1e-6)
    assert usage["requests"] == len(strong.requests) + 1
    assert usage["judgments"] == len(strong.requests) + 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--judge_model", f"decisions:{LUNA}"), "it never judges alone"),
        (("--judge_model", "systemone:jev"), "--judge_cascade systemone:jev,STRONG"),
        (
            ("--judge_model", "systemone:jev"),
            "check-judge --judge_model systemone:jev` measures",
        ),
        (("--llm_provider", "openai_decisions"), "rejudge AGENT --judge_model STRONG"),
        (("--llm_provider", "systemone"), "--judge_cascade systemone:MODEL,STRONG"),
        (("--judge_cascade", "decisions:,o4-mini"), "names no model: write decisions:"),
        (("--judge_cascade", "decisions: @http://x,b"), "'decisions:' names no model"),
        (("--judge_model", "decisions:"), "--judge_cascade decisions:MODEL,STRONG"),
        (("--judge_cascade", f"o4-mini,decisions:{LUNA}"), "name it first"),
        (("--judge_cascade", f"decisions:{LUNA},o4-mini", "--batch"), "--batch out"),
        (("--judge_cascade", "decisions:a@pool.txt,b"), "a decision model has one"),
        (("--judge_confidence", "0.8"), "goes with --judge_cascade decisions:"),
        (
            ("--judge_cascade", "gpt-5-nano,gpt-5", "--judge_confidence", "0.8"),
            "gpt-5-nano is none",
        ),
        (("--judge_confidence", "0.2"), "a probability from 0.5 to 1"),
        (
            (
                *("--judge_cascade", f"decisions:{LUNA},o4-mini"),
                *("--engine", "ray", "--judgments", "postgresql://x/y"),
            ),
            "leave --judge_cascade out with --engine ray",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_cannot_be_done_is_refused(words, message):
    """One line that names the way, and exit status 2."""
    done = call(evaluate_main, "bot", *words)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_scorer_may_have_one(project, strong):
    """``first`` names it as the option does; alone it is refused."""
    with DecisionServer(lambda _claim: 0.99) as decisions:
        judge = Judge(
            STRONG,
            base_url=strong.base_url,
            first=f"decisions:{LUNA}@{decisions.base_url}",
            doubt="signs",
            confidence=0.95,
        )
        with Scorer(
            judge=judge,
            pages=project.root / "cache" / "bot",
            scripts=project.root / "eval_scripts",
        ) as scorer:
            scored = scorer.score_sync("lake", ANSWER)
    (check,) = scored.evidence["sure"]["pages"]
    assert check["judge"] == LUNA
    assert len(decisions.requests) == 1
    assert not strong.requests
    with pytest.raises(UsageError, match="never judges alone"):
        Scorer(judge=Judge(f"decisions:{LUNA}"))


def test_the_estimate_counts_one_request_for_a_page(project, strong):
    """By the results that the agent has."""
    with DecisionServer(probability) as decisions:
        assert judged(strong, decisions).returncode == 0
        project.add_answer(text="The lake is colder still.")
        estimated = judged(strong, decisions, "--estimate")
    assert estimated.returncode == 0, estimated.stderr
    # Three claims by the strong judge, with two votes each, and the page's request.
    assert "judge requests 7," in estimated.stdout


@pytest.mark.usefixtures("project")
def test_economy_says_what_each_confidence_would_change(strong, monkeypatch):
    """From a run that asked both everywhere: the verdict of the strong judge, beside each probability."""
    cascade = ("--judge_cascade", f"decisions:{LUNA},{STRONG}")
    with DecisionServer(probability) as decisions:
        assert (
            call(evaluate_main, "bot", "--judge_base_url", strong.base_url).returncode
            == 0
        )
        lacking = call(main, "economy", "bot", *cascade)
        assert lacking.returncode == 2
        judges = f"--judge_cascade decisions:{LUNA},{STRONG}"
        both = f"evaluate bot {judges} --judge_confidence 1 --judge_doubt signs"
        assert both in lacking.stderr
        both = ("--judge_confidence", "1", "--judge_doubt", "signs")
        assert judged(strong, decisions, *both).returncode == 0
    assert set(asked_of(strong)) == {*PROBABILITIES, "gate"}
    found = json.loads(call(main, "economy", "bot", *cascade, "--json").stdout)
    assert (found["claims"], found["asked"]) == (5, 5)
    rules = {
        rule["confidence"]: (rule["strong"]["value"], rule["verdicts"]["value"])
        for rule in found["rules"]
    }
    # The claim that is surely false to the decision model is true to the strong judge.
    assert rules[0.99] == (1.0, 0.0)
    assert rules[0.97] == (0.6, 0.0)
    assert rules[0.95] == rules[0.6] == (0.4, 0.2)
    assert rules[0.5] == (0.2, 0.2)
    prices = [rule["price"]["value"] for rule in found["rules"]]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] == 1.0
    assert 0.2 < prices[-1] < 0.3
    monkeypatch.setenv("COLUMNS", "80")
    shown = call(main, "economy", "bot", *cascade, "--agreement", ".95").stdout
    assert "--judge_confidence" in shown and "…" not in shown
    assert "For no confidence it is certain (97.5%)" in shown


def test_a_guess_counts_one_request_for_a_page(project, strong):
    """An agent without results: a decision model is asked once for each page that the answer cites."""
    cited = " ".join(f"https://lake.example/{number}" for number in range(10))
    project.add_answer(text=f"The lake is deep: {cited}")
    with DecisionServer(probability) as decisions:
        guessed = judged(strong, decisions, "--estimate")
        cascade = ("--judge_cascade", f"gpt-4o-mini,{STRONG}")
        server = ("--judge_base_url", strong.base_url)
        by_votes = call(evaluate_main, "bot", *server, *cascade, "--estimate")
    requests = [
        int(re.search(r"judge requests (\d+)", done.stdout)[1])
        for done in (guessed, by_votes)
    ]
    assert requests[0] < 0.8 * requests[1]
    assert not decisions.requests


@pytest.mark.parametrize("prefix", ["decisions", "systemone"])
async def test_the_viewer_shows_what_a_decision_model_was_asked(
    project, strong, prefix
):
    """The messages are those that its judgment's key is a hash of; one without a probability, too."""
    project.cache().put_web(PAGE, TEXT, screenshot("The lake is deep.", None))
    with DecisionServer(probability) as decisions:
        done = await asyncio.to_thread(judged, strong, decisions, prefix=prefix)
    assert done.returncode == 0, done.stderr
    leaves = leaves_of(project)
    (sure,), (refused,) = (leaves[name].evidence.pages for name in ("sure", "refused"))
    catalog, pages = Catalog(project.paths), StoredPages(project.paths)
    key = AnswerKey("bot", "lake", "answer_1")
    for vote in (*sure.votes, *refused.first_votes):
        asked = await pages.messages(catalog, key, vote.judgment)
        assert asked["is_exact"]
        assert "Give the probability" in asked["messages"][0]["parts"][0]["text"]
