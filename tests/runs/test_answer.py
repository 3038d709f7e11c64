"""One answer from file to result: what is reused, what is written, and what costs the result."""

import io
import json
import re
import shutil

import pytest
from fixtures.pdf_files import encrypted_pdf
from PIL import Image
from projects import (
    ANSWER,
    TASK,
    ClaimJudge,
    Project,
    evaluate,
    outcomes_by_name,
    read_json,
)

from mind2web2 import __version__
from mind2web2.errors import JudgeDeclinedError, JudgeUnavailableError
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.results.freshness import CHANGED
from mind2web2.results.provenance import Provenance
from mind2web2.utils.files import file_sha256, text_sha256

PAGE = "https://www.lake.example/depth"
MISSING_PAGE = "https://www.lake.example/gone"
CLAIMS = {
    "said": ("The answer calls the lake deep.", None),
    "cited": ("The lake is 40 m deep.", PAGE),
    "made_up": ("The lake is frozen.", MISSING_PAGE),
}


@pytest.fixture
def project(tmp_path):
    """Return a project with an answer, a script and a cached page."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script(CLAIMS)
    project.cache().put_web(PAGE, "The lake is 40 m deep.", None)
    return project


async def only(project, client=None, **settings):
    """Evaluate a project of one answer."""
    [outcome] = await evaluate(project, client or ClaimJudge(), **settings)
    return outcome


async def test_a_result_records_its_provenance(project):
    outcome = await only(project)
    [path] = project.result_paths()
    result = read_json(path)
    assert outcome.result.document == result
    assert (outcome.score, outcome.reason, outcome.reused) == (2 / 3, None, False)
    assert (result["agent_name"], result["answer_name"], result["task_id"]) == (
        "bot",
        "answer_1.md",
        TASK,
    )
    assert (result["final_score"], result["judge_model"]) == (2 / 3, "judge-1")
    assert result["tree_statistics"] == {"depth": 1, "total_nodes": 4, "leaf_nodes": 3}
    made_from = Provenance.model_validate(result["provenance"])
    assert made_from.answer_sha256 == text_sha256(ANSWER)
    assert made_from.script == "example/lake.py"
    assert made_from.script_sha256 == file_sha256(
        project.root / "eval_scripts" / "example" / "lake.py"
    )
    assert made_from.judge.model == "judge-1"
    assert made_from.pages == {PAGE: project.cache().digest(PAGE), MISSING_PAGE: None}
    assert result["judge_usage"]["judgments"] == 4
    assert result["judge_usage"]["rejections"] == []
    assert result["run"]["version"] == __version__


async def test_the_layout_of_an_evaluation(project):
    """A copy of the answer, the result, and two logs, each under a stamp."""
    await only(project)
    files = {
        str(path.relative_to(project.folder()))
        for path in project.folder().rglob("*.*")
        if path.is_file()
    }
    stamps = {re.sub(r"\d{8}_\d{6}", "STAMP", name) for name in files}
    assert stamps == {
        "answer_1.md",
        "results/STAMP_answer_1.md.json",
        "logs/STAMP_answer_1.log",
        "logs/STAMP_answer_1.jsonl",
    }
    assert (project.folder() / "answer_1.md").read_text() == ANSWER


async def test_the_logs_name_each_claim(project):
    await only(project)
    [text_path] = project.folder().glob("logs/*.log")
    [json_path] = project.folder().glob("logs/*.jsonl")
    entries = [json.loads(line) for line in json_path.read_text(encoding="utf-8").splitlines()]
    assert {(entry["task"], entry["answer"]) for entry in entries} == {(TASK, "answer_1.md")}
    for words in ("The lake is 40 m deep.", MISSING_PAGE, "result written score=0.66"):
        assert words in text_path.read_text(encoding="utf-8")
        assert any(words in entry["message"] for entry in entries)


async def test_nothing_changed_is_reused(project):
    """No request, no new file, the very same result."""
    first = await only(project)
    files = sorted(project.folder().rglob("*"))
    judge = ClaimJudge(lambda _: False)
    again = await only(project, judge)
    assert (again.result, again.reused) == (first.result, True)
    assert judge.claims == []
    assert sorted(project.folder().rglob("*")) == files


def change_comment(project):
    """Change a byte of the script, but not its behaviour."""
    path = project.root / "eval_scripts" / "example" / "lake.py"
    path.write_bytes(path.read_bytes() + b"# checked\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda project: project.add_answer(text="The lake is shallow."),
        change_comment,
        lambda project: project.cache().put_web(PAGE, "The lake is 14 m deep.", None),
        lambda project: project.cache().put_pdf(PAGE, b"%PDF-1.4 no more than this"),
        lambda project: project.cache().clear(),
        lambda project: project.cache().put_web(MISSING_PAGE, "The lake is frozen.", None),
    ],
    ids=["answer", "script", "page", "kind of page", "no page", "missing page"],
)
async def test_a_change_causes_a_new_evaluation_and_keeps_the_earlier_result(project, change):
    await only(project)
    [earlier] = project.result_paths()
    content = earlier.read_bytes()
    change(project)
    outcome = await only(project)
    assert not outcome.reused
    assert len(project.result_paths()) == 2
    assert earlier.read_bytes() == content
    assert (await only(project)).reused


async def test_an_edited_result_is_evaluated_again(project):
    first = await only(project)
    [path] = project.result_paths()
    path.write_text(path.read_text(encoding="utf-8").replace("0.6666", "0.9999"), encoding="utf-8")
    again = await only(project)
    assert (again.reused, again.score) == (False, first.score)
    assert (await only(project)).reused


async def test_a_result_without_its_checksum_is_evaluated_again(project):
    first = await only(project)
    [path] = project.result_paths()
    content = read_json(path)
    del content["run"]["content_sha256"], content["provenance"]["versions"]
    path.write_text(json.dumps({**content, "final_score": 1.0}), encoding="utf-8")
    again = await only(project)
    assert (again.reused, again.score) == (False, first.score)


async def test_a_script_that_is_replaced_while_it_is_read_leaves_no_result(project):
    """The next run uses the new one."""
    path = project.root / "eval_scripts" / "example" / "lake.py"
    replaced = 'from pathlib import Path\nPath(__file__).write_bytes(b"# newer\\n" + NEXT)\n'
    path.write_text(f"NEXT = {path.read_bytes()!r}\n{replaced}{path.read_text()}")
    outcome = await only(project)
    assert outcome.reason == "script lake.py was changed just now: run the same command again"
    assert project.result_paths() == []
    assert (await only(project)).score == 2 / 3


async def test_another_page_of_the_task_changes_nothing(project):
    await only(project)
    project.cache().put_web("https://www.lake.example/fish", "Trout.", None)
    assert (await only(project)).reused


async def test_a_script_that_lists_pages_depends_on_the_list(project):
    """A page that appears may change what it does, though it looked none up."""
    project.add_script_body("return {'final_score': 1.0, 'pages': len(cache.get_all_urls())}")
    await only(project)
    assert (await only(project)).reused
    project.cache().put_web("https://www.lake.example/fish", "Trout.", None)
    outcome = await only(project)
    assert (outcome.reused, outcome.result.document["pages"]) == (False, 2)


async def test_another_time_that_the_agent_took_is_taken_over(project):
    await only(project)
    meta = project.root / "answers" / "bot" / TASK / "answer_1.meta.json"
    for time_s in (12.5, 13):
        meta.write_text(json.dumps({"time_seconds": time_s}))
        judge = ClaimJudge()
        outcome = await only(project, judge)
        assert (
            outcome.reused,
            outcome.result.document["time_seconds"],
            judge.claims,
        ) == (False, time_s, [])
        assert (await only(project)).reused


async def test_the_clock_may_stand_still_at_each_answers_own_moment(project):
    """The result records ``answer``, and holds until the answer's moment changes."""
    meta = project.root / "answers" / "bot" / TASK / "answer_1.meta.json"
    meta.write_text(json.dumps({"created": "2025-03-14"}))
    project.add_script_body(
        "import datetime\nreturn {**evaluator.get_summary(), 'today': str(datetime.date.today())}"
    )
    settings = {"as_of": "answer"}
    outcome = await only(project, **settings)
    inputs = outcome.result.document["provenance"]["inputs"]
    assert (outcome.result.document["today"], inputs["as_of"]) == (
        "2025-03-14",
        "answer",
    )
    assert (await only(project, **settings)).reused
    meta.write_text(json.dumps({"created": "2025-03-15"}))
    again = await only(project, **settings)
    assert again.changed == CHANGED
    meta.write_text(json.dumps({"created": "last spring"}))
    undated = await only(project, **settings)
    assert "created 'last spring' is not a date such as 2025-03-14" in undated.reason


async def test_a_result_in_doubt_is_evaluated_again(project):
    """A temporary fault of this machine must not decide a score for ever."""
    await only(project)
    [path] = project.result_paths()
    path.write_text(json.dumps({**read_json(path), "doubts": ["a worker died"]}))
    outcome = await only(project)
    assert (outcome.reused, outcome.result.document["doubts"]) == (False, [])
    assert (await only(project)).reused


async def test_line_breaks_do_not_make_another_answer(project):
    """Checkouts and archives change them."""
    project.add_answer(text="One line.\nTwo.\n")
    await only(project)
    project.add_answer(text="\ufeffOne line.\r\nTwo.\r\n")
    assert (await only(project)).reused


@pytest.mark.parametrize("content", [b"", b'{"final_score": 1.0', b"[]", b"\xff"])
async def test_a_damaged_newest_result_is_evaluated_again(project, content):
    await only(project)
    [path] = project.result_paths()
    path.write_bytes(content)
    judge = ClaimJudge()
    outcome = await only(project, judge)
    assert (outcome.score, outcome.reused, judge.claims) == (2 / 3, False, [])
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "changes",
    [
        {"provenance": None},
        {"provenance": {"answer_sha256": "x"}},
        {"final_score": None},
        {"final_score": 7},
    ],
)
async def test_a_result_of_another_tool_is_kept_but_not_reused(project, changes):
    await only(project)
    [path] = project.result_paths()
    content = json.dumps({**read_json(path), **changes})
    path.write_text(content)
    outcome = await only(project)
    assert (outcome.score, outcome.reused) == (2 / 3, False)
    assert path.read_text() == content
    assert len(project.result_paths()) == 2


async def test_deleted_results_come_back_without_a_request(project):
    """The judgments are stored apart; but for the run's own lines the result is the same."""
    first = await only(project)
    shutil.rmtree(project.results / TASK)
    judge = ClaimJudge(lambda _: False)
    again = await only(project, judge)
    assert (again.reused, judge.claims) == (False, [])
    assert again.result.is_same_but_run(first.result)


async def test_an_answer_that_fails_now_does_not_keep_an_earlier_score(project):
    """The earlier file stays; the summary says that there is no score."""
    await only(project)
    project.add_script_body("raise ValueError('bad luck')")
    outcome = await only(project)
    [earlier] = project.result_paths()
    entry = project.task_summary()["answer_1.md"]
    assert outcome.score is entry["score"] is None
    assert entry["earlier_result"] == earlier.name
    assert read_json(earlier)["final_score"] == 2 / 3


def failing(claim):
    """Be out of reach for one claim."""
    if claim == "The lake is 40 m deep.":
        raise JudgeUnavailableError("judge judge-1 is out of reach")
    return True


@pytest.mark.parametrize(
    "body",
    [
        """
        leaf = evaluator.add_leaf("leaf", "leaf")
        try:
            await evaluator.verify(claim="The lake is 40 m deep.", node=leaf)
        except Exception:
            pass
        return evaluator.get_summary()
        """,
        """
        leaf = evaluator.add_leaf("leaf", "leaf")
        try:
            await evaluator.verify(claim="The lake is 40 m deep.", node=leaf)
        except Exception:
            pass
        return {"final_score": 1.0}
        """,
        """
        leaf = evaluator.add_leaf("leaf", "leaf")
        await evaluator.batch_verify([("The lake is 40 m deep.", None, leaf, "None")])
        return evaluator.get_summary()
        """,
        """
        leaf = evaluator.add_leaf("leaf", "leaf")
        both = [evaluator.verify(claim="The lake is 40 m deep.", node=leaf), asyncio.sleep(0)]
        await asyncio.gather(*both, return_exceptions=True)
        return evaluator.get_summary()
        """,
        """
        leaf = evaluator.add_leaf("leaf", "leaf")
        try:
            await evaluator.verify(claim="The lake is 40 m deep.", node=leaf)
        except Exception:
            raise ValueError("the script's own words")
        """,
        """
        leaf = evaluator.add_leaf("leaf", "leaf")
        try:
            await evaluator.verify(claim="The lake is 40 m deep.", node=leaf)
        except Exception:
            await asyncio.Event().wait()
        """,
    ],
    ids=[
        "swallowed",
        "score made up",
        "batch",
        "gathered",
        "raised otherwise",
        "stuck after it",
    ],
)
async def test_a_failed_judge_leaves_no_result_however_the_script_reacts(project, body):
    """The reason is the judge's failure."""
    project.add_script_body(body)
    judge = ClaimJudge(failing)
    # Only one of the scripts waits for its limit.
    limit_s = 5 if "asyncio.Event()" in body else 60
    outcome = await only(project, judge, answer_timeout_s=limit_s)
    assert (outcome.result, outcome.reason) == (None, "judge judge-1 is out of reach")
    assert project.result_paths() == []


async def test_content_that_is_declined_twice_is_listed(project):
    def picky(claim):
        if claim == "The lake is 40 m deep.":
            raise JudgeDeclinedError("not this")
        return True

    outcome = await only(project, ClaimJudge(picky))
    assert outcome.score == 1 / 3
    rejected = {"node": "cited", "page": PAGE, "reason": "not this"}
    assert rejected in outcome.result.document["judge_usage"]["rejections"]


def damaged_screenshot(cache):
    """Store a page with a screenshot that another tool left damaged."""
    image = io.BytesIO()
    Image.new("RGB", (10, 10)).save(image, "JPEG")
    cache.put_web(PAGE, "The lake is 40 m deep.", image.getvalue())
    [path] = cache.task_dir.glob("*.jpg")
    path.write_bytes(b"<html>no picture</html>")


@pytest.mark.parametrize(
    ("store", "score", "outcome", "words"),
    [
        (damaged_screenshot, 2 / 3, "supported", "screenshot left out: "),
        (
            lambda cache: cache.put_pdf(PAGE, encrypted_pdf("secret", "The lake is 40 m deep.")),
            1 / 3,
            "unavailable",
            "encrypted",
        ),
    ],
    ids=["screenshot", "PDF"],
)
async def test_a_damaged_page_costs_no_other_claim(project, store, score, outcome, words):
    """Text is judged without its screenshot, and an unreadable PDF is unavailable.

    The evidence says why.
    """
    store(project.cache())
    result = (await only(project)).result.document
    leaves = result["eval_breakdown"][0]["verification_tree"]["children"]
    [page] = leaves[1]["evidence"]["pages"]
    assert (result["final_score"], page["outcome"]) == (score, outcome)
    assert words in json.dumps(page)


async def test_a_script_gets_the_arguments_that_it_names(project):
    """The model is the run's; a script without that parameter is called without it."""
    project.add_raw_script(
        "async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, "
        "logger):\n"
        "    async with semaphore, semaphore.llm, semaphore.webpage:\n"
        "        logger.info('hello %s', answer_name)\n"
        "        return {'final_score': 0.5, 'seen': [answer, agent_name, answer_name, "
        "cache.summary()]}\n"
    )
    result = (await only(project)).result.document
    assert result["seen"] == [
        ANSWER,
        "bot",
        "answer_1.md",
        {"total_urls": 1, "web_pages": 1, "pdf_pages": 0},
    ]
    assert (result["judge_model"], result["agent_name"]) == ("judge-1", "bot")
    project.add_script_body("return {**evaluator.get_summary(), 'seen': model}")
    assert (await only(project)).result.document["seen"] == "judge-1"


async def test_logs_that_cannot_be_written_cost_their_answer_only(project):
    """A file where their folder should be."""
    project.add_answer("answer_2")
    project.folder("answer_2").mkdir(parents=True)
    (project.folder("answer_2") / "logs").write_text("in the way")
    outcomes = outcomes_by_name(await evaluate(project, ClaimJudge()))
    assert outcomes["answer_1.md"].score == 2 / 3
    assert re.match(r"cannot write logs under .*answer_2.logs: ", outcomes["answer_2.md"].reason)


async def test_a_result_that_cannot_be_written_is_no_result(project):
    """A file where the folder of results should be; the judgments are kept."""
    project.folder().mkdir(parents=True)
    (project.folder() / "results").write_text("in the way")
    outcome = await only(project)
    assert outcome.result is None
    assert re.match(r"cannot write to .*results: ", outcome.reason)
    with JudgmentStore(project.results / STORE_NAME) as store:
        assert len(store.all()) == 4
