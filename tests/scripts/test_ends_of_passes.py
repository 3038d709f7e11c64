"""A pass that ends in an odd way does not cost a result.

A failure counts only where program order asks.
"""

import asyncio
import time
from textwrap import indent

import pytest
from projects import _HEADER, _START, QUICK_RETRY, ClaimJudge, Project, claim_in, evaluate
from projects import messages_text as text_of
from servers.judge_server import JudgeServer, status

from mind2web2.errors import JudgeUnavailableError
from mind2web2.llm_client import LLMClient

FORM = "from pydantic import BaseModel\nclass Names(BaseModel):\n    names: list[str]\n"
VERIFY = (
    "async def verify(claim):\n"
    "    return await evaluator.verify(claim, evaluator.add_leaf(claim, claim))\n"
)
EXTRACT = f"{FORM}{VERIFY}found = await evaluator.extract('Names?', Names)\n"
EACH = "for name in found.names or ['none']: await verify(name)\nreturn evaluator.get_summary()\n"
BUSY = "while time.process_time() < {seconds}: pass\n"
WRITES = "open('written', 'w').close()\n"


def reply(body):
    """Return names, or a verdict: late on a claim that is slow, and by the claim itself."""
    claim = claim_in(text_of(body["messages"]))
    if claim is None:
        return {"names": ["Ann", "Bob"]}
    if "slow" in claim:
        time.sleep(1)
    return {"reasoning": "r", "quote": "", "result": "false" not in claim}


def fault(body):
    """Refuse a claim that is not to be asked."""
    claim = claim_in(text_of(body["messages"]))
    return status(400) if claim == "not to be asked" else None


async def score_of(project, ahead="values", reply=reply):
    """Return the score by a judge on loopback. Raises AssertionError: there is none."""
    with JudgeServer(reply, faults=fault) as server:
        async with LLMClient(
            "openai",
            is_async=True,
            base_url=server.base_url,
            api_key="none",
            retry=QUICK_RETRY,
        ) as client:
            [outcome] = await evaluate(project, client, ahead=ahead)
    assert outcome.score is not None, outcome.reason
    return outcome.score


@pytest.mark.parametrize("ahead", ["values", None])
async def test_a_script_waits_for_the_verdicts_on_its_leaves(tmp_path, ahead):
    """Without, the score would depend on which reply comes first; a claim without a leaf may."""
    project = Project(tmp_path)
    project.add_answer()
    left = "left = asyncio.create_task(evaluator.verify('slow', {leaf}))\nawait verify('true')\n"
    end = f"{VERIFY}{left}return evaluator.get_summary()\n"
    project.add_script_body(end.format(leaf="evaluator.add_leaf('late', '')"))
    with pytest.raises(AssertionError, match="before the judge's verdict on 'late' was there"):
        await score_of(project, ahead)
    project.add_script_body(end.format(leaf=None))
    assert await score_of(project, ahead) == 1.0


OWN_NODES = (
    "from mind2web2 import VerificationNode\n"
    "for claim in ('true', None):\n"
    "    node = VerificationNode(id='same', desc='')\n"
    "    evaluator.root.add_node(node)\n"
    "    if claim: await evaluator.verify(claim, node)\n"
)
SECOND_EVALUATOR = (
    "other = started(client, answer, agent_name, answer_name, cache, semaphore, logger, model)\n"
    "await other.verify('true', other.add_leaf('same', ''))\n"
    "evaluator.add_custom_node(other.score(), 'other', '', critical=False)\n"
    "evaluator.add_leaf('same', '')\n"
)


@pytest.mark.parametrize("ahead", ["values", None])
@pytest.mark.parametrize("body", [OWN_NODES, SECOND_EVALUATOR])
async def test_a_leaf_without_a_claim_counts_0_even_if_another_has_its_id(tmp_path, body, ahead):
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(f"{body}return evaluator.get_summary()\n")
    assert await score_of(project, ahead) == 0.5


@pytest.mark.parametrize("ahead", ["values", None])
async def test_a_summary_from_before_a_verdict_is_no_result(tmp_path, ahead):
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(
        "async with asyncio.TaskGroup() as group:\n"
        "    group.create_task(evaluator.verify('true', evaluator.add_leaf('late', '')))\n"
        "    return evaluator.get_summary()\n"
    )
    with pytest.raises(AssertionError, match="before the judge's verdict on 'late' was there"):
        await score_of(project, ahead)


@pytest.mark.parametrize("now", ["time.time()", "datetime.datetime.now().timestamp()"])
async def test_a_script_that_raises_an_error_in_a_pass_runs_in_program_order(tmp_path, now):
    """The clock of a pass stands still while no reply comes."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(
        f"import datetime\n{VERIFY}await verify('true')\n"
        f"began = {now}\ntotal = sum(range(100_000))\n"
        f"logger.info('%.1f sums a second', 1 / ({now} - began))\n"
        "return evaluator.get_summary()\n"
    )
    assert await score_of(project) == 1.0


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with an answer, in whose folder scripts run."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.add_answer()
    return project


@pytest.mark.parametrize(
    "end",
    [
        WRITES,
        "import os\nif 'names' in vars(found) and not found.names: os._exit(3)\n",
        "if not found.names:\n    while True: pass\n",
    ],
)
async def test_replies_are_checked_though_the_pass_that_asked_has_ended(project, end):
    project.add_script_body(EXTRACT + end + EACH)
    async with asyncio.timeout(50):
        assert await score_of(project) == 1.0


@pytest.mark.parametrize("end", [WRITES, "import os\nif asked: os._exit(3)\n"])
async def test_a_failure_ahead_of_program_order_costs_no_result(project, end):
    body = (
        "asked = await verify('false and slow')\n"
        "if asked: await verify('not to be asked')\n"
        # The failure is there before the pass ends.
        f"{BUSY.format(seconds=1)}"
    )
    project.add_script_body(f"{VERIFY}{body}{end}return evaluator.get_summary()\n")
    assert await score_of(project) == 0.0


async def test_a_file_that_a_script_keeps_open_is_read_in_each_pass(project):
    body = (
        f"{VERIFY}names = GIVEN.read().split()\n"
        "if await verify('first'): await verify('second')\n"
        "evaluator.add_custom_node(names == ['Ann'], 'names', 'd')\n"
        "return evaluator.get_summary()\n"
    )
    opened = "from pathlib import Path\nGIVEN = Path(__file__).with_name('given.txt').open()\n"
    path = project.add_raw_script(opened + _HEADER + indent(_START + body, "    "))
    path.with_name("given.txt").write_text("Ann")
    for ahead in ("values", None):
        assert await score_of(project, ahead) == 1.0


async def test_a_template_that_writes_files_is_run_in_program_order(project):
    form = FORM.replace("BaseModel", "BaseModel, field_validator", 1) + (
        "    @field_validator('names')\n    @classmethod\n"
        f"    def _names(cls, names):\n        {WRITES}        return names\n"
    )
    project.add_script_body(EXTRACT.replace(FORM, form) + EACH)
    async with asyncio.timeout(50):
        assert await score_of(project) == 1.0


@pytest.mark.parametrize("ahead", ["values", "gates"])
async def test_a_store_with_every_reply_of_program_order_is_enough(project, ahead):
    """What was never needed is not asked ahead either; two leaves may have the same claim."""
    project.add_script_body(
        "gate, behind, last = (evaluator.add_leaf(name, 'd') for name in 'abc')\n"
        "await evaluator.verify('It is open.', gate)\n"
        "await evaluator.verify('It is open.', evaluator.add_leaf('again', 'd'))\n"
        "await evaluator.verify('It is true.', behind, extra_prerequisites=[gate])\n"
        "if await evaluator.verify('It is closed.', last):\n"
        "    await evaluator.verify('It is locked.', evaluator.add_leaf('more', 'd'))\n"
        "return evaluator.get_summary()\n"
    )

    def verdict(claim):
        if claim not in ("It is open.", "It is closed."):
            raise JudgeUnavailableError("the judge is switched off")
        return False

    for way, asked in ((None, 4), (ahead, 0)):
        judge = ClaimJudge(verdict)
        [outcome] = await evaluate(project, judge, ahead=way, reuse=False)
        assert (outcome.score, len(judge.claims)) == (0.0, asked)
