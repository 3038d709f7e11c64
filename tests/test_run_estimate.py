"""What a run will take: by its own records, by likely ones, or by a guess; nothing is touched."""

import json

import pytest
from projects import AGENT, TASK, ClaimJudge, Project, evaluate

from mind2web2.client_provider import ClientProvider
from mind2web2.eval_runner import RunFolders
from mind2web2.judgments import FILE_NAME, JudgmentStore
from mind2web2.llm_client.chat import ChatReply, TokenUsage
from mind2web2.llm_client.prices import price_usd
from mind2web2.recorded_judge import JudgeSettings
from mind2web2.run_estimate import PlannedRun, estimate_run
from mind2web2.selection import select_work

SETTINGS = JudgeSettings("openai", "gpt-4o")
ENDPOINT = "the judge of the tests"
USAGE = TokenUsage(2000, 1000, 50)
CLAIMS = {"first": ("The lake is deep.", None), "second": ("The lake is cold.", None)}
# Two votes on each claim.
JUDGMENTS = 4
GUESS = "a guess from its length and links"


class CountingJudge(ClientProvider):
    """A judge that tells its tokens."""

    endpoint = ENDPOINT

    async def chat(self, request, limit=None):
        """Answer as the client does."""
        reply = await super().chat(request, limit)
        return ChatReply(reply.text, reply.value, usage=USAGE)


def judge(verdict=lambda _claim: True):
    """Return a judge."""
    return CountingJudge(ClaimJudge(verdict))


@pytest.fixture
def project(tmp_path):
    """Return a project of two tasks, one of which has two answers."""
    project = Project(tmp_path)
    for task, stems in ((TASK, ("answer_1", "answer_2")), ("hill", ("answer_1",))):
        for stem in stems:
            project.add_answer(stem, f"{stem} to {task}", task)
        project.add_script(CLAIMS, task=task)
    return project


def estimate(project, agent=AGENT, **changes):
    """Estimate a run over all answers."""
    planned = {"judge": SETTINGS, "endpoint": ENDPOINT, "overwrite": False}
    planned |= {"with_captures": False, "with_private_network": False}
    folders = RunFolders(agent, project.paths.cache_root, project.paths.eval_results_root)
    work = select_work(project.paths, agent)
    return estimate_run(PlannedRun(work=work, folders=folders, **planned | changes))


def by_task(found):
    """Return the tasks of an estimate by name."""
    return {task.task_id: task for task in found.tasks}


async def evaluated(project, **changes):
    """Evaluate all answers as the estimates expect."""
    return await evaluate(project, judge(), settings=SETTINGS, **changes)


def files(project):
    """Return all files with their content and time."""
    paths = [path for path in project.root.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


async def test_answers_with_a_result_that_holds_take_nothing(project):
    """All of them, or all but those that have changed."""
    await evaluated(project)
    assert [task.to_evaluate for task in estimate(project).tasks] == [0, 0]
    project.add_answer("answer_2", "another text")
    changed = by_task(estimate(project))
    assert (changed[TASK].to_evaluate, changed["hill"].to_evaluate) == (1, 0)
    assert [task.to_evaluate for task in estimate(project, overwrite=True).tasks] == [1, 2]


async def test_what_a_task_took_is_expected_again(project):
    """Requests, tokens and dollars; exactly, as all its evaluations were alike."""
    await evaluated(project)
    task = by_task(estimate(project, overwrite=True))[TASK]
    cost_usd = price_usd(USAGE, "gpt-4o") * JUDGMENTS
    assert task.sample.basis == "2 results of this task"
    assert task.expected == pytest.approx([2 * n for n in (JUDGMENTS, 8000, 4000, 200, cost_usd)])


async def test_a_batch_costs_half(project):
    """As much as the providers' discount."""
    await evaluated(project)
    whole = estimate(project, overwrite=True).tasks[0].expected.cost_usd
    batch = JudgeSettings("openai", "gpt-4o", batch=True)
    assert estimate(project, judge=batch, overwrite=True).tasks[0].expected.cost_usd == pytest.approx(
        whole / 2
    )


async def test_the_likest_records_count(project):
    """This task, then this task of other agents, then other tasks; few are blended with a guess."""
    fresh = by_task(estimate(project))
    assert {task.sample.basis for task in fresh.values()} == {GUESS}
    await evaluated(project)
    for agent, task, basis in (
        (AGENT, "pond", "3 results of other tasks"),
        ("other", TASK, "2 results of this task, other agents'"),
        ("other", "pond", "3 results of other tasks, other agents'"),
    ):
        path = project.root / "answers" / agent / task / "answer_9.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("an answer")
        project.add_script(CLAIMS, task=task)
        assert by_task(estimate(project, agent))[task].sample.basis == f"{basis} and {GUESS}"


async def test_another_judge_has_other_prices_and_no_results(project):
    """The tokens are the ones known; an unknown price stays unknown."""
    await evaluated(project)
    task = by_task(estimate(project, judge=JudgeSettings("openai", "o4-mini")))[TASK]
    assert task.to_evaluate == 2
    assert task.sample.basis == "2 results of this task, by another judge"
    assert task.expected.cost_usd == pytest.approx(2 * JUDGMENTS * price_usd(USAGE, "o4-mini"))
    unknown = by_task(estimate(project, judge=JudgeSettings("openai", "judge-1")))[TASK]
    assert unknown.expected.cost_usd != unknown.expected.cost_usd
    assert unknown.expected.input_tokens == pytest.approx(16_000)


async def test_the_results_of_any_server_hold_where_its_address_is_not_set(project):
    """Those of another one do not where it is."""
    await evaluated(project)
    assert estimate(project, endpoint=None).tasks[0].to_evaluate == 0
    assert estimate(project, endpoint="another").tasks[0].to_evaluate == 1


async def test_judgments_of_a_stopped_evaluation_are_not_paid_again(project):
    """Three of four are there; the rest is what enough answers like it took."""
    for number in range(3, 7):
        project.add_answer(f"answer_{number}", f"Another text {number}.")
    await evaluated(project)
    [result] = project.result_paths("answer_2")
    result.unlink()
    with JudgmentStore(project.results / FILE_NAME) as store:
        kept = store.all()
    (project.results / FILE_NAME).unlink()
    with JudgmentStore(project.results / FILE_NAME) as store:
        store.add([one for one in kept if one.task_id == TASK and one.answer_name == "answer_2.md"][:3])
    task = by_task(estimate(project))[TASK]
    assert (task.to_evaluate, task.expected.requests) == (1, pytest.approx(1))
    assert by_task(estimate(project, overwrite=True))[TASK].expected.requests == pytest.approx(24)


async def test_a_first_short_result_does_not_speak_for_unfinished_answers(project):
    """They are expected to take what they took, and only their own judgments are kept."""
    for stem in ("answer_1", "answer_2", "answer_3"):
        project.add_answer(stem, f"{stem} " + " ".join(f"[a](https://a.example/{n})" for n in range(3)))
    await evaluated(project)
    for stem in ("answer_2", "answer_3"):
        project.result_paths(stem)[0].unlink()
    [path] = project.result_paths("answer_1")
    result = json.loads(path.read_text())
    result["judge_usage"] |= {"judgments": 1, "input_tokens": 2000}
    path.write_text(json.dumps(result))
    task = by_task(estimate(project))[TASK]
    # One result has a fifth of the weight, the guess of 21 judgments the rest; edited, it does not hold.
    assert task.sample.mean.requests == pytest.approx(0.2 * 1 + 0.8 * 21)
    assert (task.to_evaluate, task.expected.requests) == (3, pytest.approx(17 + 2 * (17 - 4)))


async def test_judgments_of_an_outdated_result_may_hold_or_not(project):
    """At best nothing is asked; expected is everything."""
    await evaluated(project)
    project.add_script({**CLAIMS, "third": ("The lake is wide.", None)}, task="hill")
    task = by_task(estimate(project))["hill"]
    assert (task.shares, task.least_shares) == ((1.0,), (0.0,))


def test_answers_that_will_have_no_result_are_named(project):
    """Those of other tasks are estimated."""
    project.add_answer("answer_3", b"")
    project.add_answer(task="unscripted")
    found = estimate(project)
    assert found.unscored.keys() == {f"{TASK}/answer_3.md", "unscripted/answer_1.md"}
    assert by_task(found)[TASK].to_evaluate == 2


def test_cited_pages_that_are_not_cached_are_counted(project):
    """As listed when they were cached, else by the links in the answers to be evaluated."""
    project.add_answer("answer_1", "[a](https://a.example/x), [b](https://b.example), [c](https://c.example)")
    project.cache().put_web("https://a.example/x", "text", None)
    assert estimate(project).uncached_pages == 2
    listing = project.root / "cache" / AGENT / f"{TASK}.json"
    listing.write_text('{"urls": {"https://d.example": ["answer_1.md"], "https://a.example/x": []}}')
    assert estimate(project).uncached_pages == 1
    listing.write_text("{")
    assert estimate(project).uncached_pages == 2


def test_cached_pages_bear_on_a_guess(project):
    """A long page costs more than a short one."""
    project.add_answer("answer_1", "[a](https://a.example/x)")
    costs = []
    for text in ("short", "long " * 50_000):
        project.cache().put_web("https://a.example/x", text, None)
        costs.append(by_task(estimate(project))[TASK].expected.cost_usd)
    assert costs[0] < costs[1]


async def test_nothing_is_run_or_written(project):
    """Not the script either, whose import would leave a trace."""
    await evaluated(project)
    trace = project.root / "trace"
    project.add_raw_script(f"open({str(trace)!r}, 'w')\n", task="hill")
    before = files(project)
    assert by_task(estimate(project))["hill"].to_evaluate == 1
    assert files(project) == before
    assert not trace.exists()
