"""Passes: how often a script runs, what it asks, and which scripts run in program order."""

from dataclasses import dataclass, field

import pytest
from passes_by_policy import result_by_policy
from projects import ClaimJudge, Project, evaluate

from mind2web2.errors import EvalScriptError
from mind2web2.scripts.isolation.messages import ScriptCall
from mind2web2.utils.files import file_sha256

WAYS = ("values", "gates")
HEAD = (
    "from pydantic import BaseModel\nclass Town(BaseModel):\n    name: str\n    urls: "
    "list[str] = []\n"
)
LEAF = "evaluator.add_leaf('{0}', '{0}')"
END = "return evaluator.get_summary()\n"


@dataclass
class Towns:
    """Supports every claim but those with "no" in them; towns are named after the extraction."""

    claims: list[str] = field(default_factory=list)

    def holds(self, claim):
        self.claims.append(claim.verification.claim)
        return "no" not in claim.verification.claim.split()

    def fill(self, form, _template):
        return f'{{"name": "Town {form.name}", "urls": ["a", "b"]}}'

    def page(self, url):
        return f"The page {url}."

    def chat(self, _request):
        return "Yes."

    def service(self, name, arguments):
        return [name, *arguments]


async def by_policy(folder, body, ahead, policy=None, **options):
    """Return what a script with this body comes to."""
    path = Project(folder).add_script_body(HEAD + body)
    call = ScriptCall(path, file_sha256(path), "bot", "answer_1.md", "An answer.", "m")
    return await result_by_policy(call, policy or Towns(), ahead=ahead, **options)


LOOP = (
    "for n in range(3):\n"
    "    town = await evaluator.extract('Which?', Town, f'{n}')\n"
    "    names = [town.name]\n"
    f"    await evaluator.verify(f'{{names}} is good.', {LEAF.format('{n}')})\n{END}"
)
GATES = (
    "row = evaluator.add_sequential('row', 'row')\n"
    "for n in range(6):\n"
    "    await evaluator.verify(f'Step {n}.', evaluator.add_leaf(f'{n}', 'd', row))\n"
    f"{END}"
)
# Each step names the one before it as its prerequisite.
CHAIN = (
    "last = None\nfor n in range(6):\n"
    "    node = evaluator.add_leaf(f'{n}', 'd')\n"
    "    await evaluator.verify(f'Step {n}.', node, extra_prerequisites=last)\n    last = node\n"
    f"{END}"
)


@pytest.mark.parametrize(
    ("body", "passes"),
    [(LOOP, (3, 3)), (GATES, (7, 3)), (CHAIN, (7, 3)), (END, (1, 1))],
)
async def test_a_script_runs_once_more_than_it_waits_for_replies(tmp_path, body, passes):
    found = [await by_policy(tmp_path, body, ahead) for ahead in WAYS]
    in_order = await by_policy(tmp_path, body, None)
    assert tuple(each.passes for each in found) == passes
    assert all(each.summary == in_order.summary for each in found)
    assert all(each.questions == in_order.questions for each in found)


async def test_claims_on_one_page_are_asked_one_after_another(tmp_path):
    body = (
        "for n in range(4):\n"
        f"    leaf = {LEAF.format('{n}')}\n"
        "    await evaluator.verify(f'Claim {n}', leaf, f'https://www.example.org/{n % 2}')\n"
        f"{END}"
    )
    policy = Towns()
    await by_policy(tmp_path, body, "values", policy)
    assert policy.claims == ["Claim 0", "Claim 2", "Claim 1", "Claim 3"]


async def test_replies_take_seconds_of_a_scripts_own_time(tmp_path):
    body = (
        "async def checks():\n"
        "    for n in range(20):\n"
        "        await evaluator.verify(f'Claim {n}', None)\n"
        f"await asyncio.wait_for(checks(), 60)\n{END}"
    )
    assert (await by_policy(tmp_path, body, "values")).passes == 2


@pytest.mark.parametrize("source", ["(town.urls or ['c'])[0]", "town.urls[0]", "str(town.size)"])
async def test_questions_on_missing_lists_and_numbers_wait(tmp_path, source):
    body = (
        "class Size(Town):\n    size: int | None = None\n"
        "town = await evaluator.extract('Which?', Size, 'x')\n"
        f"await evaluator.verify({source}, {LEAF.format('leaf')})\n{END}"
    )
    assert (await by_policy(tmp_path, body, "values")).for_nothing == ()


@pytest.mark.parametrize(
    "effect",
    [
        "import threading\nthreading.Thread(target=print).start()\n",
        "import concurrent.futures as f\nwith f.ThreadPoolExecutor() as e: e.submit(print)\n",
        "await asyncio.to_thread(print)\n",
        "import subprocess\nsubprocess.run(['true'])\n",
        "import socket\nsocket.socket().bind(('127.0.0.1', 0))\n",
        "import pathlib\npathlib.Path(__file__).with_suffix('.x').write_text('')\n",
        "end = time.process_time() + 2.5\nwhile time.process_time() < end: pass\n",
        "import uuid\nawait evaluator.verify(str(uuid.uuid4()), None)\n",
    ],
)
async def test_scripts_with_effects_run_in_program_order(tmp_path, effect):
    """Whatever they do happens once, and only the replies before it were asked for earlier."""
    body = f"await evaluator.verify('First.', None)\n{effect}print('now')\n{END}"
    found = await by_policy(tmp_path, body, "gates")
    assert found.passes >= 2
    assert "tree_statistics" in found.summary


async def test_clock_and_random_numbers_are_those_of_the_answer(tmp_path):
    body = (
        "import datetime, random\n"
        "await evaluator.verify('First.', None)\n"
        "claim = f'{time.time()} {random.random()} {datetime.datetime.now()}'\n"
        f"await evaluator.verify(claim, None)\nawait asyncio.sleep(1000)\ntime.sleep(1000)\n{END}"
    )
    policy = Towns()
    found = await by_policy(tmp_path, body, "values", policy)
    assert (found.passes, len(policy.claims)) == (2, 2)


@pytest.mark.parametrize("now", ["time.time()", "datetime.datetime.now().timestamp()"])
async def test_a_script_may_divide_by_the_time_that_a_reply_takes(tmp_path, now):
    """The clock moves a little, but not so much that a question would be another one."""
    body = (
        f"import datetime\nbegan = {now}\nawait evaluator.verify('First.', None)\n"
        f"rate = 1 / ({now} - began)\n"
        f"await evaluator.verify(f'{{began:.3f}} {{{now}:.3f}} {{rate > 1}}', None)\n{END}"
    )
    found = await by_policy(tmp_path, body, "values")
    assert (found.passes, found.for_nothing) == (2, ())


async def test_validators_run_once_for_each_extraction(tmp_path):
    body = (
        "from pydantic import field_validator\nseen = []\n"
        "class Once(Town):\n    @field_validator('name')\n    @classmethod\n"
        "    def once(cls, name):\n        seen.append(name)\n        return name\n"
        "for n in range(3):\n    await evaluator.extract('?', Once, f'{n}')\n"
        f"evaluator.add_custom_info({{'seen': seen}})\n{END}"
    )
    for ahead in (*WAYS, None):
        found = await by_policy(tmp_path, body, ahead)
        [info] = [
            each["custom"]
            for each in found.summary["eval_breakdown"][0]["info"]
            if "custom" in each
        ]
        assert info == {"seen": ["Town 0", "Town 1", "Town 2"]}


async def test_an_endless_loop_behind_a_stand_in_ends_with_the_reply(tmp_path):
    body = (
        "town = None\n"
        "while town is None or town.name != 'Town 3':\n"
        "    n = 0 if town is None else n + 1\n"
        f"    town = await evaluator.extract('?', Town, f'{{n}}')\n{END}"
    )
    found = await by_policy(tmp_path, body, "values")
    assert [each.arguments["form"]["name"] for each in found.questions] == list("0123")


async def test_a_failure_of_a_question_that_does_not_count_costs_nothing(tmp_path):
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(
        "gate = evaluator.add_leaf('gate', 'd', critical=True)\n"
        "await evaluator.verify('wrong', gate)\n"
        f"await evaluator.verify('broken', {LEAF.format('after')})\n{END}"
    )

    def verdict(claim):
        if claim == "broken":
            raise ValueError("a broken judge")
        return claim != "wrong"

    [outcome] = await evaluate(project, ClaimJudge(verdict), ahead="gates")
    assert (outcome.score, outcome.reason) == (0.0, None)
    [outcome] = await evaluate(
        project, ClaimJudge(lambda claim: claim != "wrong"), ahead="values", reuse=False
    )
    assert outcome.score == 0.0


async def test_a_failure_of_a_question_that_counts_is_the_reason(tmp_path):
    body = (
        "try:\n    await evaluator.verify('First.', None)\nexcept Exception:\n    pass\n"
        f"await evaluator.verify('Second.', None)\n{END}"
    )
    for ahead in (*WAYS, None):
        policy = Towns()

        def fail(_claim):
            raise EvalScriptError("no reply today")

        policy.holds = fail
        with pytest.raises(EvalScriptError, match="no reply today"):
            await by_policy(tmp_path, body, ahead, policy)
