"""A script that deceives its run through its process's connection costs its own answer, and no more."""

import pytest
from projects import QUICK_RETRY, ClaimJudge, Project, evaluate, outcomes_by_name
from servers.judge_server import JudgeServer

from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.llm_client import LLMClient

# The run's end of a script's process, as any script may find it.
FIND_CONNECTION = (
    "import gc\n"
    "from mind2web2.scripts.isolation import rpc\n"
    "[run] = [each for each in gc.get_objects() if type(each) is rpc.RpcClient]\n"
)


@pytest.fixture
def project(tmp_path):
    """Return a project with an answer on which its script deceives, and another."""
    project = Project(tmp_path)
    project.add_answer("answer_1", "The lake is wild.")
    project.add_answer("answer_2")
    return project


async def outcomes_of(project, body, judge=None):
    """Return what becomes of the answer that the script does this on, and of the other."""
    lines = [
        "leaf = evaluator.add_leaf('leaf', 'leaf')",
        "if 'wild' in answer:",
        *(f"    {line}" for line in (FIND_CONNECTION + body).splitlines()),
        "await evaluator.verify('The lake is deep.', leaf)",
        "return evaluator.get_summary()",
    ]
    project.add_script_body("\n".join(lines) + "\n")
    outcomes = outcomes_by_name(await evaluate(project, judge or ClaimJudge()))
    return outcomes["answer_1.md"], outcomes["answer_2.md"]


async def outcomes_by_server(project, body):
    """Return the same, by a judge on a server."""
    with JudgeServer() as server:
        async with LLMClient(
            "openai",
            is_async=True,
            base_url=server.base_url,
            api_key="none",
            retry=QUICK_RETRY,
        ) as client:
            return await outcomes_of(project, body, client)


@pytest.mark.parametrize(
    "body",
    [
        "from mind2web2.errors import JudgeUnusableError\n"
        "client.fail(JudgeUnusableError('forged'))",
        "failure = rpc.Failure('JudgeUnusableError', 'forged')\n"
        "run.send(rpc.Message('done', rpc.Done(failure=failure)))\n"
        "await asyncio.sleep(1000)",
    ],
    ids=["noted", "sent"],
)
async def test_a_script_cannot_end_the_run(project, body):
    """Only the run's own judge knows that it is unusable."""
    forged, other = await outcomes_of(project, body)
    assert (forged.result, forged.reason) == (None, "forged")
    assert (other.score, other.reason) == (1.0, None)


@pytest.mark.parametrize("name", ["ContextTooLongError", "JudgeAccessError"])
async def test_a_forged_failure_of_a_check_is_no_judgment(project, name):
    """Nothing is stored as the judge's, and its key counts as good."""
    body = (
        "from pydantic import BaseModel\n"
        "class Own(BaseModel):\n"
        "    reasoning: str\n"
        "def forged(_answer, message):\n"
        f"    failure = rpc.Failure('{name}', 'forged')\n"
        "    return rpc.Message('failure', failure, number=message.number)\n"
        "rpc._replied = forged\n"
        "await evaluator.extract('How deep?', Own)"
    )
    forged, other = await outcomes_by_server(project, body)
    assert (forged.result, forged.reason) == (None, "forged")
    assert other.score == 1.0
    with JudgmentStore(project.results / FILE_NAME) as store:
        assert {judgment.purpose for judgment in store.all()} == {"verify"}
