"""A script in passes comes to the same tree as in program order."""

import asyncio
import gc
import json
import random
import re
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import pytest
from evaluations import image
from generated_scripts import made_up_script
from program_order import program_order
from projects import AGENT, QUICK_RETRY, ClaimJudge, Project, evaluate
from servers.judge_server import JudgeServer, content
from servers.maps_server import KEY, MapsServer

from mind2web2.errors import CaptureError, JudgeUnavailableError
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatReply, Usage
from mind2web2.pages.captures import SharedCaptures
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.answer import RunParts
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.scripts.isolation.service import RunService
from mind2web2.scripts.limits import DualSemaphore

# Each runs the scripts of its block in the one way or the other.
PLACES = (program_order, nullcontext)
LAKE, OTHER, GONE = (
    "https://lake.example/depth",
    "https://lake.example/other",
    "https://lake.example/gone",
)
DEPTH = """
from pydantic import BaseModel, field_validator

class Depth(BaseModel):
    '''How deep it is.'''
    metres: int
    places: list[str] = []

    @field_validator("metres")
    @classmethod
    def is_deep(cls, value):
        assert value > 10, "too shallow to be true"
        return value

"""
RICH_SCRIPT = (
    f"""{DEPTH}
LAKE, OTHER, GONE = {LAKE!r}, {OTHER!r}, {GONE!r}
"""
    + """
evaluator.add_custom_info({"stored": cache.get_all_urls(), "kind": cache.has(LAKE)})
depth = await evaluator.extract("How deep?", Depth, "depth")
there = await evaluator.extract("How deep there?", Depth, "there", source=LAKE)
names = [("shown", [GONE, LAKE, OTHER]), ("plain", None), ("gone", GONE)]
group = evaluator.add_sequential("group", "group")
leaves = {name: evaluator.add_leaf(name, name, group, critical=name == "shown") for name, _ in names}
for name, sources in names:
    claim = f"{name}: it is {depth.metres} m deep, as said in {there.places}."
    await evaluator.verify(claim, leaves[name], sources)
await evaluator.batch_verify(
    [(f"point {number}", LAKE, evaluator.add_leaf(f"point_{number}", "d"), None) for number in range(5)]
)
cache.put_web("https://lake.example/made", "made up", None)
made = evaluator.add_leaf("made", "made", extra_prerequisites=None)
await asyncio.gather(evaluator.verify("It is made up.", made, "https://lake.example/made"))
own = await client.async_response(
    model="any", messages=[{"role": "user", "content": "And?"}], temperature=1, top_p=0.5
)
own_depth, tokens = await client.async_response(
    model="any", messages=[{"role": "user", "content": "Deep?"}], response_format=Depth, count_token=True
)
images, text = await evaluator.verifier.get_page_info(LAKE)
again = await evaluator.extractor.call_llm_with_semaphore(
    model="any", messages=[{"role": "user", "content": "Deep?"}], response_format=Depth
)
evaluator.add_custom_info({
    "own": own, "metres": own_depth.metres, "tokens": tokens, "images": images, "text": text,
    "again": again.metres, "gone": await evaluator.extractor.get_page_info(GONE),
})
return evaluator.get_summary()
"""
)


@dataclass
class SeededJudge:
    """Decides by seed and question, after a random number of the loop's turns.

    Keeps what it was asked.
    """

    seed: int
    failing: str | None = None
    asked: Counter = field(default_factory=Counter)
    endpoint: str = "the seeded judge"

    async def chat(self, request, limit=None):
        """Answer in its own time."""
        draw = random.Random(f"{self.seed} {request.name}")
        for _ in range(draw.randrange(9)):
            await asyncio.sleep(0)
        async with limit:
            self.asked[request.name] += 1
            if self.failing is not None and self.failing in str(request.messages):
                raise JudgeUnavailableError("the judge is out")
        usage = Usage(draw.randrange(900), 0, draw.randrange(90))
        if request.template is None:
            return ChatReply(text="a text", usage=usage, served_model="seeded-1")
        if request.template.__name__ == "Depth":
            return ChatReply(text='{"metres": 80, "places": ["here"]}', usage=usage)
        if request.template.__name__ in ("Town", "Checked"):
            text = json.dumps({"name": f"Town {draw.random()}"})
            return ChatReply(text=text, usage=usage)
        verdict = request.template(reasoning=f"read {request.name}", result=draw.random() < 0.6)
        return ChatReply(
            text=verdict.model_dump_json(),
            value=verdict,
            usage=usage,
            served_model="seeded-1",
        )

    async def close(self):
        """Close nothing."""


class Browser:
    """Captures one page, and no other."""

    async def capture_page(self, url, logger):  # noqa: ARG002
        """Return the page."""
        if url == OTHER:
            return None, "Depth: none"
        raise CaptureError("the page is gone")


async def results_of(project, judge, *, captures=None):
    """Evaluate a project and return what became of each answer.

    The result leaves out what differs from run to run.
    """
    folders = RunFolders(AGENT, project.paths.cache_root, project.paths.eval_results_root)
    with JudgmentStore(project.results / STORE_NAME) as store:
        run_judge = CachingJudge(JudgeSpec("o4-mini"), judge, store)
        run = RunParts(
            judge=run_judge,
            library=PageLibrary(),
            limits=DualSemaphore(asyncio.Semaphore(10), asyncio.Semaphore(30)),
            reuse=True,
            answer_timeout_s=60,
            captures=captures,
            # Asks what program order asks.
            ahead=None,
        )
        work = select_work(project.paths, AGENT)
        outcomes = await evaluate_work(work, folders, run, Concurrency(4, 3), RunProgress())
    return {
        (each.task_id, each.answer_name): told(each) for each in outcomes
    }, run_judge.usage.total()


def told(outcome):
    """Return a result without times, or the reason why there is none."""
    if outcome.result is None:
        return outcome.reason
    result = {
        name: value
        for name, value in outcome.result.document.items()
        if name not in ("run", "seal")
    }
    result["provenance"] = {**result["provenance"], "inputs": None}
    # To the last digit, a sum depends on the order of what is added.
    result["judge_usage"] = {
        **result["judge_usage"],
        "cost_usd": round(outcome.result.document["judge_usage"]["cost_usd"], 3),
    }
    return json.loads(re.sub(r'"captured_at": "[^"]*"', '"captured_at": "now"', json.dumps(result)))


async def test_made_up_scripts_come_to_the_same(tmp_path):
    """Whatever they do, to the last word of the evidence; errors are the same line."""
    seen = []
    for where in PLACES:
        project = Project(tmp_path / where.__name__)
        for number in range(8):
            task = f"task_{number}"
            project.add_answer("answer_1", f"answer to {task}", task)
            project.add_raw_script(made_up_script(number, 18), task)
        judge = SeededJudge(7)
        with where():
            results, totals = await results_of(project, judge)
        seen.append((results, judge.asked, totals))
    (here, asked_here, totals_here), (isolated, asked_isolated, totals_isolated) = seen
    assert isolated == here
    assert sum(isinstance(result, dict) for result in here.values()) > 3
    assert asked_isolated == asked_here
    cents = [
        replace(total.asked, cost_usd=round(total.asked.cost_usd, 3))
        for total in (totals_isolated, totals_here)
    ]
    assert cents[0] == cents[1]


ODD_RESULTS = """
import collections, datetime, enum
from pydantic import BaseModel
Depth = enum.IntEnum("Depth", {"DEEP": 80})
Shade = enum.Enum("Shade", {"BLUE": 1})
class Name(str): pass
class Share(float): pass
class Names(dict): pass
Size = collections.namedtuple("Size", "width")
class Lake(BaseModel):
    name: str
odd = {
    "plain": {1: (2, 3), None: True},
    "extended": Names({Name("a"): [Depth.DEEP, Share(0.5), Size(1)]}),
    "counted": [collections.defaultdict(lambda: 0, {"a": 1}), collections.Counter("aab"), {Depth.DEEP: 1}],
    "surrogate": "half a character \\ud83d",
    "enum": Shade.BLUE,
    "model": Lake(name="Como"),
    "date": datetime.date(2025, 1, 1),
    "bytes": b"deep",
    "class": Lake,
    "function": lambda: 1,
    "generator": (each for each in ()),
    "infinite": float("inf"),
}
odd["recursive"] = odd
summary = {"final_score": Share(1.0), "odd": odd[answer]}
return Names(summary) if answer == "extended" else summary
"""


async def test_results_of_any_type_are_the_same(tmp_path):
    """A script's own objects are plain values in the result, or the reason is the same line."""
    kinds = [*re.findall(r'^ {4}"(\w+)":', ODD_RESULTS, re.MULTILINE), "recursive"]
    seen = []
    for where in PLACES:
        project = Project(tmp_path / where.__name__)
        for number, kind in enumerate(kinds, start=1):
            project.add_answer(f"answer_{number}", kind)
        project.add_script_body(ODD_RESULTS)
        with where():
            results, _ = await results_of(project, SeededJudge(7))
        seen.append(results)
    assert seen[1] == seen[0]
    assert sum(isinstance(result, dict) for result in seen[0].values()) == 4, seen[0]


@pytest.mark.parametrize("captured", [False, True])
async def test_all_that_scripts_ask_for_comes_to_the_same(tmp_path, captured):
    """Scripts ask for everything that they can ask for.

    They ask for pages with images and without, captures, templates with checks, and questions and
    pages of their own.
    """
    seen = []
    for where in PLACES:
        project = Project(tmp_path / where.__name__)
        project.cache().put_web(LAKE, "Depth: 80 m", image(900, 3000))
        project.add_answer("answer_1", f"The lake is 80 m deep [depth]({LAKE}).")
        project.add_script_body(RICH_SCRIPT)
        judge = SeededJudge(3)
        captures = SharedCaptures.by(Browser()) if captured else None
        with where():
            results, _ = await results_of(project, judge, captures=captures)
        seen.append((results, judge.asked))
    (here, asked_here), (isolated, asked_isolated) = seen
    assert isolated == here
    assert asked_isolated == asked_here
    assert all(isinstance(result, dict) for result in here.values()), here


async def test_a_script_may_bring_a_browser_of_its_own(tmp_path):
    seen = []
    for where in PLACES:
        project = Project(tmp_path / where.__name__)
        project.add_answer("answer_1")
        project.add_script_body(
            "class Browser:\n"
            "    async def capture_page(self, url, logger): return None, f'captured by the "
            "script: {url}'\n"
            "evaluator = Evaluator()\n"
            "evaluator.initialize('lake', client=client, answer=answer, global_cache=cache,\n"
            "    global_semaphore=semaphore, logger=logger, browser_manager=Browser())\n"
            f"await evaluator.verify('It is deep.', evaluator.add_leaf('leaf', 'd'), {OTHER!r})\n"
            "return evaluator.get_summary()"
        )
        judge = SeededJudge(3)
        with where():
            results, _ = await results_of(project, judge, captures=SharedCaptures.by(Browser()))
        seen.append((results, judge.asked))
        assert project.cache().get_web(OTHER)[0] == f"captured by the script: {OTHER}"
    assert seen[0] == seen[1]


OWN_CACHE = f"""{DEPTH}
class Pages:
    def has(self, url): return "web" if url == {LAKE!r} else None
    def get_web(self, url, get_screenshot=True): return "Depth: 80 m \\ud83d", None

evaluator = Evaluator()
evaluator.initialize("lake", client=client, answer=answer, global_cache=Pages(), logger=logger)
depth = await evaluator.extract("How deep?", Depth, "depth", source={LAKE!r})
for name, url in (("there", {LAKE!r}), ("gone", {GONE!r})):
    await evaluator.verify(f"It is {{depth.metres}} m deep.", evaluator.add_leaf(name, name), url)
evaluator.add_custom_info({{"shown": await evaluator.verifier.get_page_info({LAKE!r})}})
return evaluator.get_summary()
"""


async def test_a_script_may_bring_a_cache_of_its_own(tmp_path):
    """Its pages are in the script's process alone, which asks the questions about them."""
    seen = []
    for where in PLACES:
        project = Project(tmp_path / where.__name__)
        project.add_answer("answer_1")
        project.add_script_body(OWN_CACHE)
        judge = SeededJudge(5)
        with where():
            results, _ = await results_of(project, judge)
        seen.append((results, judge.asked))
    assert seen[0] == seen[1]
    assert all(isinstance(result, dict) for result in seen[0][0].values()), seen[0][0]
    assert sum(seen[0][1].values()) == 3


@pytest.mark.parametrize("body", ["", "except Exception: pass", "except BaseException: pass"])
async def test_a_judge_that_fails_leaves_no_result(tmp_path, body):
    """Whatever the script makes of it.

    Earlier replies are kept, and nothing is asked afterwards.
    """
    reasons = []
    for where in PLACES:
        project = Project(tmp_path / where.__name__)
        project.add_answer("answer_1")
        verifying = [
            f"await evaluator.verify('point {each}', evaluator.add_leaf('p{each}', 'd'))"
            for each in range(9)
        ]
        lines = [f"try: {each}\n{body}" if body else each for each in verifying]
        project.add_script_body("\n".join([*lines, "return {'final_score': 1.0}"]))
        judge = SeededJudge(1, failing="point 0")
        with where():
            [reason] = (await results_of(project, judge))[0].values()
        reasons.append(reason)
        assert sum(judge.asked.values()) < 18
    assert reasons == ["the judge is out"] * 2


async def test_a_reply_that_the_scripts_template_refuses_is_repaired(tmp_path):
    project = Project(tmp_path)
    project.add_answer("answer_1")
    project.add_script_body(
        DEPTH + "found = await evaluator.extract('How deep?', Depth)\n"
        "return {**evaluator.get_summary(), 'final_score': float(found.metres == 80)}\n"
    )
    faults = [
        content('{"metres": 3, "places": []}'),
        content('{"metres": 80, "places": []}'),
    ] * 2
    requests = []
    with JudgeServer(faults=faults) as server:
        for where in PLACES:
            (project.results / STORE_NAME).unlink(missing_ok=True)
            async with LLMClient(
                "openai",
                is_async=True,
                base_url=server.base_url,
                api_key="none",
                retry=QUICK_RETRY,
            ) as client:
                with where():
                    [outcome] = await evaluate(project, client, reuse=False)
            assert outcome.score == 1.0, outcome.reason
            requests.append(server.requests[len(requests) * 2 :])
    assert requests[0] == requests[1]
    assert "too shallow to be true" in str(requests[1][-1])


async def test_a_stored_judgment_that_no_longer_fits_is_asked_anew(tmp_path):
    project = Project(tmp_path)
    project.add_answer("answer_1")
    asked = []
    for limit in (10, 11, 90):
        body = (
            DEPTH.replace("value > 10", f"value > {limit}")
            + "await evaluator.extract('How deep?', Depth)\n"
        )
        project.add_script_body(body + "return evaluator.get_summary()")
        judge = SeededJudge(1)
        [result] = (await results_of(project, judge))[0].values()
        asked.append(sum(judge.asked.values()))
    assert asked == [1, 0, 1]
    assert "does not fill Depth" in result


async def test_maps_are_asked_by_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("GOOGLE_MAPS_API_KEY", KEY)
    project = Project(tmp_path)
    project.add_answer("answer_1")
    project.add_script_body(
        "import os\n"
        "from mind2web2.api_tools import tool_googlemap\n"
        "tool = tool_googlemap.GoogleMapsTool()\n"
        "seen = [await tool.get_city_name('1 Mill Lane, Tarn'), "
        "os.environ.get('GOOGLE_MAPS_API_KEY')]\n"
        "seen.append(await tool.calculate_distance('1 Mill Lane, Tarn', 'Lake Island'))\n"
        "seen.append(await tool.calculate_distance('1 Mill Lane, Tarn', 'The Moon'))\n"
        "return {**evaluator.get_summary(), 'seen': seen}"
    )
    with MapsServer().serve() as web:
        monkeypatch.setattr(
            "mind2web2.api_tools.tool_googlemap.GoogleMapsTool.__init__.__wrapped__.__kwdefaults__",
            {"base_url": web.url, "retry_timeout_s": 30.0, "first_delay_s": 0.0},
        )
        [outcome] = await evaluate(project, SeededJudge(1))
    assert outcome.result.document["seen"] == [
        "Tarn",
        None,
        12_345,
        "Distance not found",
    ]


async def test_nothing_of_an_answer_is_kept_in_a_cycle(tmp_path):
    """Reference counting frees what was asked, so that a long run takes no more memory."""
    project = Project(tmp_path)
    for number in range(3):
        project.add_answer(f"answer_{number}")
    project.add_script_body(
        "for n in range(3):\n"
        "    await evaluator.verify(f'Claim {n}', evaluator.add_leaf(f'l{n}', 'd'))\n"
        "return evaluator.get_summary()\n"
    )
    # Errors that other tests have logged may keep theirs.
    gc.collect()
    before = of_questions()
    gc.disable()
    try:
        await evaluate(project, ClaimJudge())
        kept = [each for each in of_questions() if each not in before]
    finally:
        gc.enable()
    assert kept == []


def of_questions():
    """Return what lives of questions in this process."""
    return [each for each in gc.get_objects() if isinstance(each, AnswerJudge | RunService)]
