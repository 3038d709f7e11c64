"""A run over tasks and answers: order, limits and errors; the published functions."""

import asyncio
import inspect
import json
import re

import pytest
from projects import (
    ANSWER,
    QUICK_RETRY,
    TASK,
    ClaimJudge,
    Project,
    block_in,
    claim_in,
    evaluate,
    outcomes_by_name,
    read_json,
)
from servers.judge_server import JudgeServer, prompt_text, status

from mind2web2.analysis.summaries import generate_result_summary, merge_all_results
from mind2web2.errors import UsageError
from mind2web2.llm_client import LLMClient
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, uncached_pages
from mind2web2.runs.task import evaluate_task

PAGE = "https://www.lake.example/depth"
CLAIMS = {
    "first": ("The lake is deep.", None),
    "second": ("The lake is cold.", None),
    "third": ("The lake is wide.", None),
}
# A gate that never opens is a failure, not a hang.
PATIENCE_S = 30


@pytest.fixture
def project(tmp_path):
    """Return a project with one task of two answers."""
    project = Project(tmp_path)
    project.add_answer("answer_1")
    project.add_answer("answer_2", "The lake is shallow.")
    project.add_script(CLAIMS)
    return project


async def test_outcomes_come_in_the_order_of_the_work(tmp_path):
    project = Project(tmp_path)
    for task in ("t10", "t2"):
        project.add_script(CLAIMS, task)
        for number in (10, 9, 1):
            project.add_answer(f"answer_{number}", task=task)
    progress = RunProgress()
    outcomes = await evaluate(project, ClaimJudge(), progress=progress)
    names = [f"{outcome.task_id}/{outcome.answer_name.split('.')[0]}" for outcome in outcomes]
    assert names == [f"{task}/answer_{number}" for task in ("t2", "t10") for number in (1, 9, 10)]
    assert (progress.answers_total, progress.tasks_total, progress.tasks_done) == (
        6,
        2,
        2,
    )
    assert progress.running == {}
    assert sorted(map(id, progress.outcomes)) == sorted(map(id, outcomes))


async def test_every_claim_is_asked_with_the_runs_model(project):
    """Two trials each, once for both answers together where the question is the same."""
    judge = ClaimJudge()
    await evaluate(project, judge)
    assert sorted(judge.claims) == sorted(claim for claim, _ in CLAIMS.values() for _ in range(4))
    assert set(judge.models) == {"judge-1"}


class Crowd:
    """Holds judge requests back until the allowed number of something runs at once.

    Args:
        count: of what runs at the moment; by default the requests themselves.
    """

    def __init__(self, allowed, count=None):
        """Start with nothing seen."""
        self.most = 0
        self._active = 0
        self._allowed, self._count = allowed, count or (lambda: self._active)
        self._full = asyncio.Event()

    async def verdict(self, _claim):
        """Agree once the allowed number has been seen."""
        self._active += 1
        try:
            self.most = max(self.most, self._count())
            if self.most >= self._allowed:
                self._full.set()
            await asyncio.wait_for(self._full.wait(), PATIENCE_S)
            self.most = max(self.most, self._count())
        finally:
            self._active -= 1
        return True


async def test_no_more_answers_at_once_than_allowed(tmp_path):
    project = Project(tmp_path)
    project.add_script(CLAIMS)
    for number in range(6):
        project.add_answer(f"answer_{number + 1}", f"Text {number}.")
    progress = RunProgress()
    crowd = Crowd(2, lambda: len(progress.running))
    outcomes = await evaluate(
        project,
        ClaimJudge(crowd.verdict),
        concurrency=Concurrency(max_answers=2),
        progress=progress,
    )
    assert [outcome.score for outcome in outcomes] == [1.0] * 6
    assert crowd.most == 2


async def test_no_more_tasks_at_once_than_allowed(tmp_path):
    project = Project(tmp_path)
    for task in ("a", "b", "c", "d"):
        project.add_script(CLAIMS, task)
        project.add_answer(task=task)
    progress = RunProgress()
    crowd = Crowd(3, lambda: len(progress.running))
    judge = ClaimJudge(crowd.verdict)
    # One trial of one task's claim is like another task's: keep them apart by their answers.
    for task in ("a", "b", "c", "d"):
        project.add_answer(text=f"Answer to {task}.", task=task)
    outcomes = await evaluate(
        project, judge, concurrency=Concurrency(max_tasks=3), progress=progress
    )
    assert [outcome.score for outcome in outcomes] == [1.0] * 4
    assert crowd.most == 3


async def test_no_more_judge_requests_at_once_than_allowed(tmp_path):
    project = Project(tmp_path)
    for task in ("a", "b"):
        project.add_script(CLAIMS, task)
        for number in range(3):
            project.add_answer(f"answer_{number + 1}", f"Text {number} of {task}.", task)
    crowd = Crowd(4)
    outcomes = await evaluate(project, ClaimJudge(crowd.verdict), llm_limit=4)
    assert [outcome.score for outcome in outcomes] == [1.0] * 6
    assert crowd.most == 4


SWALLOWING = """
for name, claim in [("a", "The lake is deep."), ("b", "The lake is cold."), ("c", "The lake is wide.")]:
    leaf = evaluator.add_leaf(name, name)
    try:
        await evaluator.verify(claim=claim, node=leaf)
    except Exception:
        pass
return evaluator.get_summary()
"""


@pytest.mark.parametrize("swallows", [False, True])
async def test_an_outage_costs_its_answer_the_result_and_no_other(project, swallows):
    """Requests about it stop after the first failure.

    The same run again asks only what is missing.
    """
    if swallows:
        project.add_script_body(SWALLOWING)

    def outage(body):
        is_hit = (
            "shallow" in prompt_text(body) and claim_in(prompt_text(body)) == "The lake is cold."
        )
        return status(500, "down for maintenance") if is_hit else None

    with JudgeServer(faults=outage) as server:
        async with LLMClient(
            "openai",
            is_async=True,
            base_url=server.base_url,
            api_key="dummy",
            retry=QUICK_RETRY,
        ) as client:
            outcomes = outcomes_by_name(await evaluate(project, client))
        asked = [
            claim_in(prompt_text(body))
            for body in server.requests
            if "shallow" in prompt_text(body)
        ]
    assert outcomes["answer_1.md"].score == 1.0
    hit = outcomes["answer_2.md"]
    assert (hit.result, hit.score) == (None, None)
    assert "500" in hit.reason and "judge-1" in hit.reason and "\n" not in hit.reason
    # In flight already, as it does not depend on the other.
    assert asked.count("The lake is wide.") <= 2
    # Two trials at the same time, each tried up to three times; the slower one stops when the first
    # gives up.
    assert 3 <= asked.count("The lake is cold.") <= 6
    assert project.task_summary()["answer_2.md"]["status"] == "unscored"
    assert project.task_summary()["answer_2.md"]["reason"] == hit.reason
    assert project.task_summary()["answer_1.md"]["score"] == 1.0
    assert project.result_paths("answer_2") == []
    with JudgeServer() as server:
        async with LLMClient(
            "openai", is_async=True, base_url=server.base_url, api_key="dummy"
        ) as client:
            outcomes = outcomes_by_name(await evaluate(project, client))
    assert outcomes["answer_2.md"].score == 1.0


async def test_an_unknown_entry_of_a_cache_index_costs_no_result(project):
    """Pages that are not cached are unavailable; everything else goes on."""
    folder = project.root / "cache" / "bot" / TASK
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(b'{"https://a.example": 7}')
    outcomes = await evaluate(project, ClaimJudge(), dump_cache=True)
    assert [outcome.score for outcome in outcomes] == [1.0, 1.0]


def file_for_folder(task_folder):
    """Put a file where the task's folder should be."""
    task_folder.parent.mkdir(parents=True)
    task_folder.write_text("in the way")


def folder_for_index(task_folder):
    """Put a folder where the index should be."""
    (task_folder / "index.json").mkdir(parents=True)


def damaged_index(task_folder):
    """Put half an index there."""
    task_folder.mkdir(parents=True)
    (task_folder / "index.json").write_text("{")


@pytest.mark.parametrize(
    ("obstacle", "reason"),
    [
        (file_for_folder, None),
        (folder_for_index, r"^cannot read .*index\.json: "),
        (damaged_index, r"index\.json is damaged: repair it"),
    ],
)
async def test_a_cache_that_cannot_be_used_harms_no_other_task(project, obstacle, reason):
    project.add_answer(task="other")
    project.add_script(CLAIMS, "other")
    obstacle(project.root / "cache" / "bot" / "other")
    outcomes = await evaluate(project, ClaimJudge(), dump_cache=True)
    by_task = {outcome.task_id: outcome for outcome in outcomes}
    assert by_task[TASK].score == 1.0
    if reason is None:
        assert by_task["other"].score == 1.0
    else:
        assert re.search(reason, by_task["other"].reason)


async def test_a_summary_that_cannot_be_written_harms_no_other_task(project):
    """The progress notes it, for the end of the run."""
    project.add_answer(task="other")
    project.add_script(CLAIMS, "other")
    project.results.mkdir(parents=True)
    (project.results / "other").write_text("in the way")
    progress = RunProgress()
    await evaluate(project, ClaimJudge(), progress=progress)
    [problem] = progress.problems
    assert re.match(r"cannot write to .*bot/other: ", problem)
    assert [entry["score"] for entry in project.task_summary().values()] == [1.0, 1.0]


async def test_the_index_lists_what_is_on_disk_when_asked_for(project):
    """An entry whose file is gone goes too; without the option the index is left alone."""
    cache = project.cache()
    cache.put_web(PAGE, "Deep.", None)
    for path in cache.task_dir.glob("*.txt"):
        path.unlink()
    index = cache.task_dir / "index.json"
    await evaluate(project, ClaimJudge())
    assert list(read_json(index)) == [PAGE]
    await evaluate(project, ClaimJudge(), dump_cache=True)
    assert read_json(index) == {}


async def test_a_task_without_a_cache_gets_none(project):
    """Tidying makes no folder."""
    await evaluate(project, ClaimJudge(), dump_cache=True)
    assert not (project.root / "cache").exists()


def task_arguments(project, **changes):
    """Return the arguments of ``evaluate_task`` with each task's own folders."""
    given = {
        "client": ClaimJudge(),
        "task_id": TASK,
        "agent_name": "bot",
        "answer_dir": project.root / "answers" / "bot" / TASK,
        "cache_dir": project.root / "cache" / "bot" / TASK,
        "output_dir": project.root / "eval_results",
        "script_path": project.root / "eval_scripts" / "example" / f"{TASK}.py",
    }
    return {**given, **changes}


def test_the_published_signature():
    """Names, order and defaults are fixed (eval-scripts.md)."""
    assert str(inspect.signature(evaluate_task)).split(" -> ")[0] == (
        "(client: 'Any', task_id: 'str', agent_name: 'str', answer_dir: 'str | Path', "
        "cache_dir: 'str | Path', output_dir: 'str | Path', script_path: 'str | Path', "
        "dump_cache: 'bool' = True, is_self_debug: 'bool' = False, overwrite: 'bool' = False, "
        "max_concurrent_answers: 'int' = 3, webpage_semaphore: 'Any' = None, llm_semaphore: 'Any' "
        "= None)"
    )


async def test_a_task_is_evaluated_with_any_client(project):
    """One that has only ``async_response`` will do; the result files are those of a run."""
    judge = ClaimJudge()
    results = await evaluate_task(**task_arguments(project, client=judge))
    assert [result["answer_name"] for result in results] == [
        "answer_1.md",
        "answer_2.md",
    ]
    assert [result["final_score"] for result in results] == [1.0, 1.0]
    assert set(judge.models) == {"o4-mini"}
    assert results[0] == read_json(project.result_paths()[0])
    assert len(project.task_summary()) == 2
    asked = len(judge.claims)
    assert await evaluate_task(**task_arguments(project, client=judge)) == results
    assert len(judge.claims) == asked


@pytest.mark.parametrize("overwrite", [False, True])
async def test_another_client_is_another_judge(project, overwrite):
    """Two objects of one class may judge differently; ``overwrite`` also reuses nothing."""
    await evaluate_task(**task_arguments(project))
    judge = ClaimJudge(lambda _: False)
    results = await evaluate_task(**task_arguments(project, client=judge, overwrite=overwrite))
    assert [result["final_score"] for result in results] == [0.0, 0.0]
    assert (len(judge.claims), len(project.result_paths())) == (12, 2)


async def test_clients_that_name_one_judge_share_its_judgments(project):
    first, second = ClaimJudge(), ClaimJudge()
    first.endpoint = second.endpoint = "the judge of the lab"
    results = await evaluate_task(**task_arguments(project, client=first))
    again = await evaluate_task(**task_arguments(project, client=second))
    assert (again, second.claims) == (results, [])


async def test_a_task_is_evaluated_with_a_real_client(project, capsys):
    with JudgeServer() as server:
        async with LLMClient(
            "openai", is_async=True, base_url=server.base_url, api_key="dummy"
        ) as client:
            arguments = task_arguments(project, client=client)
            texts = {name: str(value) for name, value in arguments.items() if name != "client"}
            results = await evaluate_task(client, **texts, is_self_debug=True)
        assert {body["model"] for body in server.requests} == {"o4-mini"}
    assert [result["final_score"] for result in results] == [1.0, 1.0]
    assert results[0]["judge_usage"]["input_tokens"] == 600
    assert "The lake is deep." in capsys.readouterr().err


@pytest.mark.parametrize("level", ["root", "agent", "task"])
async def test_folders_may_be_given_at_each_level(project, level):
    """The root of all agents, an agent's folder, the task's own; pages are found likewise."""
    project.add_script({"cited": ("The lake is deep.", PAGE)})
    project.cache().put_web(PAGE, "Deep.", None)
    below = {"root": "", "agent": "bot", "task": f"bot/{TASK}"}[level]
    results = await evaluate_task(
        **task_arguments(
            project,
            answer_dir=project.root / "answers" / below,
            cache_dir=project.root / "cache" / below,
        )
    )
    assert [result["final_score"] for result in results] == [1.0, 1.0]
    assert len(project.result_paths("answer_1")) == 1


async def test_a_cache_that_is_not_there_is_an_empty_one(project):
    """A script that cites nothing needs none; no folder is made."""
    results = await evaluate_task(**task_arguments(project, cache_dir=project.root / "nowhere"))
    assert [result["final_score"] for result in results] == [1.0, 1.0]
    assert not (project.root / "nowhere").exists()


async def test_a_task_captures_pages_that_are_not_cached(project):
    page = "http://127.0.0.1:8765/depth"
    project.add_script({"cited": ("The lake is deep.", page)})
    results = await evaluate_task(
        **task_arguments(project, cache_dir=project.root / "cache" / "bot" / TASK)
    )
    assert [result["final_score"] for result in results] == [0.0, 0.0]
    record = project.cache().capture_record(page)
    assert [trouble.kind for trouble in record.troubles] == ["refused_address"]
    [leaf] = results[0]["eval_breakdown"][0]["verification_tree"]["children"]
    assert leaf["evidence"]["pages"][0]["reason"] == record.failure


@pytest.mark.parametrize(
    ("content", "count"),
    [
        ({"all_unique_urls": [PAGE, f"{PAGE}/", "https://www.lake.example/other"]}, 1),
        ({"all_unique_urls": 3}, 0),
        (["urls"], 0),
        ({}, 0),
        (None, 0),
    ],
)
def test_uncached_pages_are_counted_where_citations_are_known(project, content, count):
    """A malformed file gives 0; without one the answers count, which cite nothing here."""
    project.cache().put_web(PAGE, "Deep.", None)
    if content is not None:
        (project.root / "cache" / "bot" / f"{TASK}.json").write_text(json.dumps(content))
    folders = RunFolders("bot", project.paths.cache_root, project.paths.eval_results_root)
    [work] = select_work(project.paths, "bot", [TASK])
    assert uncached_pages(folders, work) == count


async def test_a_task_keeps_to_the_semaphores_it_is_given(project):
    """Plain ones of asyncio will do."""
    crowd = Crowd(2)
    limits = {
        "webpage_semaphore": asyncio.Semaphore(1),
        "llm_semaphore": asyncio.Semaphore(2),
    }
    results = await evaluate_task(
        **task_arguments(project, client=ClaimJudge(crowd.verdict), **limits)
    )
    assert len(results) == 2
    assert crowd.most == 2


async def test_answers_without_a_result_are_left_out_and_logged(project, caplog):
    """The list holds results only.

    The log and the summary say why one is missing, or counts as 0.
    """
    project.add_answer("answer_1", b"\xff")
    project.add_answer("answer_3", b"")
    results = await evaluate_task(**task_arguments(project))
    assert [result["answer_name"] for result in results] == ["answer_2.md"]
    assert "is not UTF-8" in caplog.text
    assert (
        "counts as 0 task=lake answer=answer_3.md reason=the agent gave an empty answer"
        in caplog.text
    )
    summary = project.task_summary()
    assert summary["answer_1.md"]["status"] == "unscored"
    assert (summary["answer_3.md"]["score"], summary["answer_3.md"]["status"]) == (
        0.0,
        "failed",
    )


async def test_a_missing_script_is_the_reason(project, caplog):
    """Each answer stays without a result, with the script's path as the reason."""
    missing = project.root / "eval_scripts" / "gone.py"
    assert await evaluate_task(**task_arguments(project, script_path=missing)) == []
    assert "gone.py" in caplog.text
    assert all("gone.py" in entry["reason"] for entry in project.task_summary().values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_id": "../lake"}, r"task '\.\./lake' begins with a dot"),
        ({"task_id": "a/b"}, r"task 'a/b' contains"),
        ({"agent_name": ".."}, r"agent '\.\.' begins with a dot"),
        ({"agent_name": "bot/../x"}, r"agent 'bot/\.\./x' contains"),
        ({"agent_name": ""}, "agent '' is empty"),
        (
            {"answer_dir": "nowhere"},
            r"no answers to task lake under nowhere: expected answer_<k>\.md",
        ),
    ],
)
async def test_a_task_that_cannot_be_evaluated_says_why(project, changes, message):
    with pytest.raises(UsageError, match=message):
        await evaluate_task(**task_arguments(project, **changes))
    assert not (project.root / "eval_results").exists()


@pytest.mark.parametrize("client", [None, object(), "openai"])
async def test_an_object_without_async_response_is_no_client(project, client):
    """The message names what it must have."""
    with pytest.raises(TypeError, match=r"client must have async_response"):
        await evaluate_task(**task_arguments(project, client=client))


async def test_the_summaries_after_a_task(project):
    await evaluate_task(**task_arguments(project))
    root = project.root / "eval_results"
    merged = merge_all_results(str(root))
    entry = {
        "answer_name": "answer_1.md",
        "score": 1.0,
        "status": "success",
        "success": True,
    }
    assert merged == {TASK: {"bot": [entry, {**entry, "answer_name": "answer_2.md"}]}}
    assert read_json(root / "all_results.json") == merged
    summary = generate_result_summary(str(root), "bot")
    assert summary == read_json(root / "bot" / "summary.json")
    assert (summary["avg_score"], summary["pass_at_2"], summary["num_tasks"]) == (
        1.0,
        1.0,
        1,
    )
    assert summary["avg_answer_word_count"] == (len(ANSWER.split()) + 4) / 2
    assert generate_result_summary(str(root), "nobody") is None


async def test_extraction_and_verification_reach_the_judge_with_their_texts(project):
    """A script that holds the judge's semaphore around its own calls does not stop itself."""
    project.add_raw_script(
        "import asyncio\n"
        "from pydantic import BaseModel\n"
        "from mind2web2 import Evaluator\n"
        "class Facts(BaseModel):\n    depth: str | None = None\n"
        "async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, "
        "logger):\n"
        "    evaluator = Evaluator()\n"
        "    evaluator.initialize('lake', client=client, answer=answer, global_cache=cache,\n"
        "                         global_semaphore=semaphore, logger=logger)\n"
        "    async def check(number):\n"
        "        async with semaphore.llm:\n"
        "            facts = await evaluator.extract('The depth.', Facts, f'facts_{number}')\n"
        "            leaf = evaluator.add_leaf(f'leaf_{number}', 'depth')\n"
        "            await evaluator.verify(f'It is {facts.depth} deep ({number}).', leaf)\n"
        "    async with semaphore:\n"
        "        await asyncio.gather(*map(check, range(4)))\n"
        "    return evaluator.get_summary()\n"
    )

    def reply(body):
        if block_in(prompt_text(body), "what to extract") == "The depth.":
            return json.dumps({"depth": "40 m"})
        is_right = re.fullmatch(r"It is 40 m deep \(\d\)\.", claim_in(prompt_text(body)))
        return {"reasoning": "read", "result": is_right is not None}

    with JudgeServer(reply) as server:
        async with LLMClient(
            "openai", is_async=True, base_url=server.base_url, api_key="dummy"
        ) as client:
            async with asyncio.timeout(PATIENCE_S):
                outcomes = await evaluate(project, client, llm_limit=1)
        assert server.most_at_once <= 2
    assert [outcome.score for outcome in outcomes] == [1.0, 1.0]
