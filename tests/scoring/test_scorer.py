"""Scores of single answers: outcomes, limits, threads and loops, cancellation and the end."""

import asyncio
import logging
import math
import threading
from dataclasses import replace

import pytest
from evaluations import stored
from projects import REPOSITORY, ClaimJudge, Project, read_json
from servers.judge_server import VERDICT, JudgeServer, status
from servers.local_http import Answer, LocalHttp
from servers.recorded_replies import RecordedReplies

from mind2web2 import Judge, NoScore, Score, Scorer
from mind2web2.capture.models import CapturedPage, CaptureRecord
from mind2web2.errors import AnswerError, UsageError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.answers import read_answer
from mind2web2.scoring import scorer as scorer_module

DEEP = "The lake is deep."
URL = "https://lake.example/depth"
MODEL = "gpt-4.1-mini"


@pytest.fixture
def project(tmp_path):
    """Return a project whose one script checks one claim."""
    project = Project(tmp_path)
    project.add_script({"deep": (DEEP, None)})
    return project


def scorer_of(project, judge=None, **settings):
    """Return a scorer of a project's scripts, with a judge in this process by default."""
    if not isinstance(judge, Judge):
        judge = Judge(client=judge or ClaimJudge())
    return Scorer(judge=judge, scripts=project.root / "eval_scripts", **settings)


def score_once(project, judge=None, answer="The lake is deep.", **settings):
    """Return the outcome of one answer."""
    with scorer_of(project, judge, **settings) as scorer:
        return scorer.score_sync("lake", answer)


class PatientJudge(ClaimJudge):
    """A judge that answers when it is released."""

    def __init__(self):
        super().__init__(self._wait)
        self.is_asked, self.release = threading.Event(), threading.Event()

    async def _wait(self, _claim):
        self.is_asked.set()
        await asyncio.to_thread(self.release.wait, 60)
        return True


def test_a_script_reads_its_files_again_for_each_answer(project):
    script = project.add_script_body(
        "evaluator.add_custom_node(sorted(GIVEN) == answer.split(), 'given', 'd')\n"
        "return evaluator.get_summary()\n"
    )
    loads = (
        "from pathlib import Path\nGIVEN = [p.stem for p in Path(__file__).parent.glob('*.json')]\n"
    )
    script.write_text(loads + script.read_text())
    script.with_name("a.json").write_text("{}")
    with scorer_of(project) as scorer:
        assert scorer.score_sync("lake", "a").score == 1.0
        script.with_name("b.json").write_text("{}")
        assert scorer.score_sync("lake", "a b").score == 1.0


async def test_the_example_has_the_scores_of_evaluate():
    task = "step_free_walks"
    expected = read_json(REPOSITORY / "examples/expected_scores.json")[task]
    with JudgeServer(RecordedReplies()) as server:
        async with Scorer(
            judge=Judge(MODEL, server.base_url, api_key="none"),
            pages=REPOSITORY / "cache/example",
            scripts=REPOSITORY / "eval_scripts",
        ) as scorer:
            texts = [read_answer(REPOSITORY / "answers/example" / task / name) for name in expected]
            outcomes = await asyncio.gather(*(scorer.score(task, text) for text in texts))
    assert [outcome.score for outcome in outcomes] == pytest.approx(list(expected.values()))
    for outcome in outcomes:
        assert outcome.tree["score"] == outcome.score
        assert outcome.cost_usd > 0
        assert {evidence["decided_by"] for evidence in outcome.evidence.values()} <= {
            "judge",
            "page",
            "prerequisite",
            "script",
        }
    assert scorer.usage.asked.judgments == len(server.calls)
    assert scorer.counts.scores == len(expected)


RAISES = "raise ValueError('a bug')"
REACHES = "return {'final_score': 2.0}"
EXITS = """
async def end():
    sys.exit(3)

asyncio.create_task(end())
await asyncio.sleep(0)
return evaluator.get_summary()
"""


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (RAISES, "script", "a bug"),
        (REACHES, "script", "final_score 2.0"),
        (
            "while True: await asyncio.sleep(0)",
            "script",
            "did not return within 0.05 s",
        ),
        ("import nothing_of_that_name", "script", "nothing_of_that_name"),
    ],
)
def test_a_script_that_fails_gives_no_score(project, caplog, body, kind, reason):
    project.add_script_body(body)
    with caplog.at_level(logging.INFO):
        outcome = score_once(project, answer_timeout=0.05 if "sleep" in body else 60)
    assert caplog.records == []
    assert isinstance(outcome, NoScore)
    assert outcome.kind == kind
    assert reason in outcome.reason
    assert "\n" not in outcome.reason


CARELESS = """
evaluator.add_leaf("forgotten", "Its hours")
return evaluator.get_summary()
"""


def test_a_script_that_exits_in_a_task_ends_nothing(project):
    """The scorer's loop goes on."""
    project.add_script_body(EXITS)
    with scorer_of(project) as scorer:
        assert [scorer.score_sync("lake", f"answer {number}").score for number in range(2)] == [
            0.0,
            0.0,
        ]


@pytest.mark.parametrize(
    ("settings", "fault", "kind"),
    [
        ({}, status(401, "bad key"), "judge"),
        ({}, status(400, "no such parameter"), "judge"),
        ({"max_cost": 1e-9}, None, "budget"),
    ],
)
def test_a_judge_that_fails_gives_no_score(project, settings, fault, kind):
    """A budget that is spent gives no score either."""
    with JudgeServer(faults=lambda _body: fault) as server:
        judge = Judge(MODEL, server.base_url, api_key="none", outage_wait_s=0.1)
        assert score_once(project, judge, **settings).kind == kind


def test_a_judge_that_comes_back_is_asked_again(project, monkeypatch):
    """A key that was rejected may be right by now."""
    monkeypatch.setattr(scorer_module, "_TRY_AGAIN_AFTER_S", 0.0)
    faults = [status(401, "bad key")]
    with (
        JudgeServer(faults=lambda _body: faults[0] if faults else None) as server,
        scorer_of(project, Judge(MODEL, server.base_url, api_key="none")) as scorer,
    ):
        assert scorer.score_sync("lake", "one").kind == "judge"
        faults.clear()
        scorer._loop_thread.run(asyncio.sleep(0)).result()
        assert scorer.score_sync("lake", "two").score == 1.0


def test_in_an_outage_answers_fail_at_once_until_the_judge_is_tried_again(project, monkeypatch):
    """None of them has a score; once the judge is back, answers have scores again."""
    monkeypatch.setattr(scorer_module, "_TRY_AGAIN_AFTER_S", 600.0)
    is_away = [status(503, "away")]
    with JudgeServer(faults=lambda _body: is_away[0] if is_away else None) as server:
        judge = Judge(MODEL, server.base_url, api_key="none", outage_wait_s=0.1)
        with scorer_of(project, judge) as scorer:
            outcomes = [scorer.score_sync("lake", f"answer {i}") for i in range(2)]
            assert [outcome.kind for outcome in outcomes] == ["judge", "judge"]
            sent = len(server.requests)
            assert scorer.score_sync("lake", "in the outage") == outcomes[-1]
            assert len(server.requests) == sent
            is_away.clear()
            (again,) = scorer._parts.trying_again
            scorer._loop_thread._loop.call_soon_threadsafe(again._run)
            assert scorer.score_sync("lake", "after it").score == 1.0


def failure(is_transient):
    """Return a failed capture."""
    record = CaptureRecord(
        requested_url=URL,
        final_url=URL,
        captured_at="2026-01-01",
        kind=None,
        failure="gone",
        is_transient=is_transient,
    )
    return CapturedPage(record)


@pytest.mark.parametrize(
    ("page", "missing_pages", "expected"),
    [
        ("stored", "no_score", 1.0),
        (None, "no_score", "page"),
        (None, "unavailable", 0.0),
        (failure(is_transient=False), "no_score", 0.0),
        (failure(is_transient=True), "no_score", "page"),
        (failure(is_transient=True), "unavailable", 0.0),
    ],
)
def test_a_missing_page_means_what_the_caller_chose(project, caplog, page, missing_pages, expected):
    """A page whose capture is known to fail is the answer's own fault."""
    project.add_script({"deep": (DEEP, URL)})
    pages = project.root / "cache" / "bot"
    cache = stored(pages / "lake", fish="Fish: none")
    if page == "stored":
        cache.put_web(URL, "Depth: 80 m", None)
    elif page is not None:
        cache.put_capture(page)
    outcome = score_once(project, pages=pages, missing_pages=missing_pages)
    assert (outcome.score if isinstance(outcome, Score) else outcome.kind) == expected
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(("source", "expected"), [("N/A", 0.0), ("http://wiki/", "page")])
def test_a_word_in_place_of_an_address_fails_its_claim(project, source, expected):
    project.add_script({"deep": (DEEP, source)})
    pages = project.root / "cache"
    pages.mkdir()
    outcome = score_once(project, pages=pages)
    assert (outcome.score if isinstance(outcome, Score) else outcome.kind) == expected


def test_missing_pages_are_captured_and_stored_where_the_caller_wants_it(project):
    """One that does not exist is the answer's own fault."""
    html = Answer(
        b"<p>Depth: 80 m, formed by a glacier.</p>",
        headers={"Content-Type": "text/html"},
    )
    pages = project.root / "cache"
    pages.mkdir()
    with LocalHttp(lambda asked: html if asked.path == "/depth" else Answer(b"", 404)) as site:
        urls = [f"{site.url}/depth", f"{site.url}/invented"]
        project.add_script({"deep": (DEEP, urls[0]), "invented": (DEEP, urls[1])})
        outcome = score_once(
            project, pages=pages, missing_pages="capture", allow_private_network=True
        )
    assert outcome.score == 0.5
    assert [CacheFileSys(pages / "lake").has(url) for url in urls] == ["web", None]


def test_pages_that_cannot_be_read_give_no_score(project):
    """An index that is a folder, say."""
    (project.root / "cache/lake/index.json").mkdir(parents=True)
    assert score_once(project, pages=project.root / "cache").kind == "page"


def test_pages_that_are_stored_meanwhile_are_found(project):
    """An agent's browser may store pages while answers are scored."""
    project.add_script({"deep": (DEEP, URL)})
    pages = project.root / "cache"
    pages.mkdir()
    with scorer_of(project, pages=pages) as scorer:
        assert scorer.score_sync("lake", "It is deep.").kind == "page"
        stored(pages / "lake")
        assert scorer.score_sync("lake", "It is deep.").score == 1.0


def test_a_page_that_is_captured_again_is_judged_as_it_is_now(project):
    project.add_script({"deep": (DEEP, URL)})
    seen = []

    class Reader(ClaimJudge):
        async def async_response(self, **request):
            seen.append("80 m" in str(request["messages"]))
            return await super().async_response(**request)

    cache = CacheFileSys(project.root / "cache/lake")
    cache.task_dir.mkdir(parents=True)
    with scorer_of(project, Reader(), pages=project.root / "cache") as scorer:
        for number, text in enumerate(("", "Shallow.", "Depth: 80 m.")):
            cache.put_web(URL, text, None)
            cache.save()
            outcome = scorer.score_sync("lake", f"answer {number}")
            assert outcome.score == (1.0 if text else 0.0)
    assert seen == [False, False, True, True]


def test_an_empty_answer_has_the_score_zero(project):
    """The agent's own failure, without a question to the judge."""
    outcome = score_once(project, answer=" \n")
    assert (outcome.score, outcome.tree, outcome.evidence, outcome.cost_usd) == (
        0.0,
        {},
        {},
        0.0,
    )


@pytest.mark.parametrize(
    ("task", "answer", "error", "text"),
    [
        ("sea", "x", UsageError, "no script for task sea"),
        ("../lake", "x", UsageError, "task"),
        ("lake", 3, AnswerError, "the answer is int"),
        ("lake", "\ud800", AnswerError, "surrogate"),
        ("lake", "x" * 1_000_001, AnswerError, "1,000,001 bytes"),
    ],
)
async def test_what_is_no_answer_to_a_task_is_refused(project, task, answer, error, text):
    async with scorer_of(project) as scorer:
        with pytest.raises(error, match=text):
            await scorer.score(task, answer)


@pytest.mark.parametrize(
    "settings",
    [
        {"pages": "nowhere"},
        {"missing_pages": "maybe"},
        {"max_answers": 0},
        {"eval_version": "../x"},
    ],
)
def test_unusable_settings_are_refused(project, settings):
    with pytest.raises(UsageError):
        scorer_of(project, **settings)


def test_a_judge_that_is_only_named_is_refused(project):
    """A judge has more settings than its name."""
    with pytest.raises(UsageError, match=r"^judge is 'o4-mini': give Judge\(model=\.\.\.\)$"):
        Scorer(judge="o4-mini", scripts=project.root / "eval_scripts")


def test_a_cost_limit_needs_a_price(project):
    with JudgeServer(VERDICT, input_tokens=1000, output_tokens=500) as server:
        judge = Judge("local-judge", server.base_url, api_key="none")
        with pytest.raises(UsageError, match=r"Judge\(price=\.\.\.\)") as caught:
            score_once(project, judge, max_cost=5)
        assert "--" not in str(caught.value)
        with pytest.raises(UsageError, match="in dollars per million tokens"):
            score_once(project, replace(judge, price=(1.0,)))
        outcome = score_once(project, replace(judge, price=(2.0, 4.0)), max_cost=5)
    assert outcome.cost_usd == pytest.approx(len(server.requests) * (1000 * 2 + 500 * 4) / 1e6)


def test_each_scorer_has_its_own_price(project):
    """Opening another scorer of the same model does not change the price of the first."""
    with JudgeServer(VERDICT, input_tokens=1000, output_tokens=500) as server:
        cheap = Judge("local-judge", server.base_url, api_key="none", price=(2.0, 4.0))
        dear = replace(cheap, price=(20.0, 40.0))
        with scorer_of(project, cheap, max_cost=5) as first:
            dear_outcome = score_once(project, dear, max_cost=5)
            assert isinstance(dear_outcome, Score)
            requests = len(server.requests)
            outcome = first.score_sync("lake", DEEP)
    assert isinstance(outcome, Score)
    one_usd = (1000 * 2 + 500 * 4) / 1e6
    assert dear_outcome.cost_usd == pytest.approx(requests * one_usd * 10)
    assert outcome.cost_usd == pytest.approx((len(server.requests) - requests) * one_usd)
    assert outcome.result["judge_usage"]["cost_usd"] == pytest.approx(outcome.cost_usd)


@pytest.mark.parametrize(
    "extra_body",
    [{"model": "another"}, {"temperature": 1}, {"a": float("nan")}, {"a": {1}}],
)
def test_parameters_of_the_scorers_own_are_refused(project, extra_body):
    """Another model's judgments would be stored as the named one's."""
    with pytest.raises(UsageError, match="extra_body"):
        scorer_of(project, Judge(base_url="http://localhost:1/v1", extra_body=extra_body))


async def test_limits_hold_for_any_number_of_calls(project):
    """Equal answers are judged once; the judge never has more requests than allowed."""
    with JudgeServer() as server:
        judge = Judge(MODEL, server.base_url, api_key="none")
        async with scorer_of(project, judge, max_llm_requests=4, max_answers=8) as scorer:
            outcomes = await asyncio.gather(
                *(scorer.score("lake", f"answer {n % 15}") for n in range(45))
            )
    assert {outcome.score for outcome in outcomes} == {1.0}
    assert len(server.calls) == 2 * 15
    assert server.most_at_once <= 4


def test_scores_are_had_with_and_without_loops_and_from_many_threads(project):
    """One of the threads runs a loop."""
    with scorer_of(project) as scorer:

        async def both():
            return [
                scorer.score_sync("lake", "in a loop"),
                await scorer.score("lake", "awaited"),
            ]

        outcomes = [scorer.score_sync("lake", "without a loop"), *asyncio.run(both())]
        threads = [
            threading.Thread(target=lambda: outcomes.extend(asyncio.run(both()))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [outcome.score for outcome in outcomes] == [1.0] * 9


async def test_two_scorers_share_nothing(project):
    """Each asks its own judge."""
    async with (
        scorer_of(project) as kind,
        scorer_of(project, ClaimJudge(lambda _claim: False)) as strict,
    ):
        kind_score, strict_score = await asyncio.gather(
            kind.score("lake", "x"), strict.score("lake", "x")
        )
    assert (kind_score.score, strict_score.score) == (1.0, 0.0)


def test_judgments_in_a_file_are_reused_by_the_next_scorer(project):
    with JudgeServer() as server:
        for _ in range(2):
            judge = Judge(MODEL, server.base_url, api_key="none")
            score_once(project, judge, judgments=project.root / "judgments.sqlite3")
    assert len(server.calls) == 2


async def test_a_cancelled_call_frees_its_place(project):
    judge = PatientJudge()
    async with scorer_of(project, judge, max_answers=1) as scorer:
        call = asyncio.create_task(scorer.score("lake", "one"))
        await asyncio.to_thread(judge.is_asked.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        judge.release.set()
        assert (await scorer.score("lake", "two")).score == 1.0
    assert scorer.counts.scores == 1


async def test_calls_in_flight_end_with_the_scorer(project):
    """Running or waiting; later calls are refused."""
    judge = PatientJudge()
    scorer = scorer_of(project, judge, max_answers=1)
    async with scorer:
        calls = [
            asyncio.create_task(scorer.score("lake", f"answer {number}")) for number in range(3)
        ]
        await asyncio.to_thread(judge.is_asked.wait, 60)
        await scorer.aclose()
        judge.release.set()
        assert {outcome.kind for outcome in await asyncio.gather(*calls)} == {"closed"}
        with pytest.raises(UsageError, match="not open"):
            await scorer.score("lake", "late")
    assert scorer.counts.no_scores == {"closed": 3}
    with pytest.raises(UsageError, match="entered once"):
        await scorer.__aenter__()


GATED = """
row = evaluator.add_sequential("row", "x")
gate = evaluator.add_leaf("gate", "Its depth", parent=row)
leaf = evaluator.add_leaf("leaf", "Its fish", parent=row)
await evaluator.verify(claim="It is deep.", node=gate)
await evaluator.verify(claim="It has fish.", node=leaf)
return evaluator.get_summary()
"""


def test_a_request_that_does_not_count_any_more_is_cancelled(project, caplog):
    """The claim was behind a gate that failed while the reply was still to come."""
    project.add_script_body(GATED)
    is_ahead, ended = asyncio.Event(), []

    async def judged(claim):
        if claim == "It is deep.":
            await is_ahead.wait()
            return False
        is_ahead.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(claim)

    with scorer_of(project, ClaimJudge(judged)) as scorer:
        assert scorer.score_sync("lake", "It is deep.").score == 0.0
        assert set(ended) == {"It has fish."}
    assert not caplog.records


def test_the_scorer_closes_while_a_client_blocks_its_thread(project, monkeypatch, caplog):
    monkeypatch.setattr(scorer_module, "_CLOSE_GRACE_S", 0.05)
    begun, end = threading.Event(), threading.Event()

    def block(_claim):
        begun.set()
        return end.wait(60)

    scorer = scorer_of(project, ClaimJudge(block))
    outcomes = []
    with scorer:
        thread = threading.Thread(target=lambda: outcomes.append(scorer.score_sync("lake", "x")))
        thread.start()
        begun.wait(60)
    thread.join()
    assert outcomes == [NoScore("closed", outcomes[0].reason)]
    assert "the judge's client blocks it" in caplog.text
    end.set()
    scorer._loop_thread._thread.join()


def test_a_script_does_not_see_the_environment(project, monkeypatch):
    monkeypatch.setenv("A_SECRET", "1")
    body = (
        "import os\nreturn {**evaluator.get_summary(), 'final_score': float('A_SECRET' in "
        "os.environ)}"
    )
    project.add_script_body(body)
    assert score_once(project).score == 0.0


async def test_a_judge_is_named_as_in_evaluate(project):
    """Parameters reach the server; an unknown provider is refused."""
    with JudgeServer(VERDICT) as server:
        judge = Judge(
            "judge-1",
            server.base_url,
            temperature=0.5,
            reasoning_effort="low",
            api_key="a-key",
        )
        async with scorer_of(project, judge) as scorer:
            outcome = await scorer.score("lake", "x")
    assert "a-key" not in repr(judge)
    assert server.requests[0]["model"] == "judge-1"
    assert outcome.result["provenance"]["judge"]["temperature"] == 0.5
    with pytest.raises(UsageError, match="no such provider"):
        scorer_of(project, Judge(provider="oracle")).__enter__()


@pytest.mark.parametrize(
    ("judge", "settings", "message"),
    [
        ({"model": ""}, {}, "model: the value is empty: give one"),
        ({"model": None}, {}, "model is None: give a text"),
        ({"base_url": ""}, {}, "base_url: the value is empty: give one"),
        ({"temperature": 9}, {}, "temperature: '9' is not a temperature from 0 to 2"),
        ({"temperature": "0.5"}, {}, "temperature is '0.5': give a number"),
        ({"max_images": -1}, {}, "max_images: '-1' is not a whole number"),
        ({"votes": 2}, {}, "votes is '2' is not an odd number"),
        ({"outage_wait_s": -1}, {}, "outage_wait_s: '-1' is not a positive number"),
        ({"extra_body": [1]}, {}, r"extra_body is \[1\]: give a dictionary"),
        ({}, {"max_cost": -1}, "max_cost: '-1' is not a positive number of dollars"),
        ({}, {"max_cost": math.nan}, "max_cost: 'nan' is not a positive number"),
        ({}, {"max_answers": 0}, "max_answers: '0' is not a whole number of at least"),
        ({}, {"max_llm_requests": "9"}, "max_llm_requests is '9': give a number"),
        (
            {},
            {"answer_timeout": math.nan},
            "answer_timeout: 'nan' is not a positive number of seconds",
        ),
    ],
)
def test_values_are_checked_as_those_of_options_are(judge, settings, message):
    """An empty model would mean the default one.

    A budget that is not a number would mean none.
    """
    with pytest.raises(UsageError, match=message):
        Scorer(judge=Judge(**judge), **settings)


def test_a_scorer_knows_the_prices_of_the_file(project, monkeypatch):
    monkeypatch.chdir(project.root)
    (project.root / "mind2web2.toml").write_text("[prices.own]\ninput = 1\noutput = 2\n")
    judge = Judge("own", "http://127.0.0.1:9/v1", api_key="none")
    with Scorer(judge=judge, scripts=project.root / "eval_scripts", max_cost=1) as open_one:
        assert open_one.is_open
