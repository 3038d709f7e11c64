"""A script that deceives its run through its process's connection.

The deceit costs its own answer, and no more.
"""

import json
from textwrap import indent

import pytest
from evaluations import tree_nodes
from projects import QUICK_RETRY, ClaimJudge, Project, evaluate, outcomes_by_name
from servers.judge_server import JudgeServer

from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.pages.captures import SharedCaptures
from mind2web2.scripts.isolation import rpc

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
        "rpc._reply_to = forged\n"
        "await evaluator.extract('How deep?', Own)"
    )
    forged, other = await outcomes_by_server(project, body)
    assert (forged.result, forged.reason) == (None, "forged")
    assert other.score == 1.0
    with JudgmentStore(project.results / STORE_NAME) as store:
        assert {judgment.purpose for judgment in store.all()} == {"verify"}


GIVEN = "given={'task': 't', 'answer': 'a', 'evaluator_config': %s}"
CLAIM = (
    "claim={'verification': {'claim': 'c', 'node_id': None, 'additional_instruction': '',\n"
    "    'num_trials': %s, 'use_screenshot': False}, 'urls': []}"
)


def asked(name, *arguments):
    """Return the line of a script that asks its run a question."""
    given = f"dict({', '.join(arguments)})"
    question = f"rpc.Question('key', {name!r}, {given})"
    return f"await run.ask('reply', object, question={question})"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            asked("judged", CLAIM % "-4", GIVEN % "{}"),
            "the script's process sent an invalid question 'judged': "
            "claim.verification.num_trials: Value error, num_trials must be an odd number such "
            "as 3, not -4",
        ),
        (
            asked("judged", CLAIM % "1", GIVEN % "{'part_height': 0}"),
            "the script's process sent an invalid question 'judged': "
            "given.evaluator_config.part_height: Input should be greater than 0",
        ),
        (
            "from mind2web2.llm_client.chat import ChatRequest\n"
            "messages = [{'role': 'user', 'content': '?'}]\n"
            "await client.chat(ChatRequest('m', messages, extra={'model': 'dear', 'messages': "
            "[]}))",
            "not supported in a request: messages, model",
        ),
        (
            "messages = [{'role': 'user', 'content': [['?']]}]\n"
            "await client.async_response(model='m', messages=messages)",
            "a request of the script's own: messages.0.content.parts.0: Input should be "
            "a valid dictionary or object to extract fields from",
        ),
    ],
)
async def test_a_question_that_fails_in_the_run_is_no_verdict(project, line, reason):
    body = f"try:\n{indent(line, '    ')}\nexcept Exception: pass"
    forged, other = await outcomes_of(project, body)
    assert (forged.result, forged.reason) == (None, reason)
    assert other.score == 1.0
    logs = (project.folder("answer_1") / "logs").glob("*.log")
    log = "".join(path.read_text() for path in logs)
    assert ("Traceback" in log) == reason.startswith("the ")


@pytest.mark.parametrize(
    ("questions", "reason"),
    [
        (
            "[rpc.Message('ask', {}, 'ledger', 7)] * 2",
            "script lake.py: its process sent an invalid message (ValueError); does it change "
            "modules that the evaluation uses?",
        ),
        (
            "[rpc.Message('ask', {'request': 'x' * 200_000}, 'chat', 7)]",
            "script lake.py asks more than 0.1 MB at once: ask fewer questions at the same time",
        ),
    ],
    ids=["one number", "too much"],
)
async def test_questions_are_told_apart_and_bounded(project, monkeypatch, questions, reason):
    """A second one of a number would get the first one's reply; many fill the run's memory."""
    monkeypatch.setattr(rpc, "MAX_WAITING_BYTES", 100_000)
    body = (
        f"contents = [rpc.encode(each) for each in {questions}]\n"
        "packed = [rpc._LENGTH.pack(len(each)) + each for each in contents]\n"
        "import os\n"
        "os.write(run._fd, b''.join(packed))\n"
        "await asyncio.sleep(1000)"
    )
    forged, other = await outcomes_of(project, body)
    assert (forged.result, forged.reason) == (None, reason)
    assert other.score == 1.0


RECORD = {
    "name": "mind2web2.judge",
    "level": 20,
    "level_name": "INFO",
    "text": "deep",
    "stack": None,
    "trace": None,
    "extra": {},
}


@pytest.mark.parametrize(
    ("to", "field"),
    [
        ("answer", {"level": "high"}),
        ("answer", {"extra": {"args": [1]}}),
        ("another", {}),
    ],
)
async def test_a_record_that_no_logger_made_ends_the_evaluation(project, to, field):
    """Such a record would break the run's log, or pose as another's line."""
    content = {"to": to, "record": {**RECORD, **field}}
    body = f"run.send(rpc.Message('note', {content!r}, 'log'))\nawait asyncio.sleep(1000)"
    forged, other = await outcomes_of(project, body)
    assert forged.reason.startswith("script lake.py: its process sent an invalid message")
    assert other.score == 1.0


@pytest.mark.parametrize(
    "lines",
    [
        "record = logging.makeLogRecord({'msg': 'deep', 'levelno': 20})",
        "record.levelname = None",
        "record.name = 7",
        "record.created = -1.0",
        "record.msg = Odd()",
        "logger.addHandler(logging.getLogger('mind2web2').handlers[0])",
    ],
)
async def test_an_odd_record_of_a_script_costs_nothing(project, lines):
    """A script may make records of its own, and pass on those of others."""
    body = (
        "import logging\n"
        "class Odd:\n"
        "    def __str__(self):\n"
        "        raise AttributeError\n"
        "record = logging.makeLogRecord({'msg': 'deep', 'name': 'lake', 'levelno': 20})\n"
        f"{lines}\n"
        "logger.handle(record)\n"
        "return {'final_score': 1.0}"
    )
    for outcome in await outcomes_of(project, body):
        assert outcome.score == 1.0


async def test_the_fields_of_a_record_are_its_own(project, capfd):
    """Extras with the names of such fields are left out, and a text is not used as a format."""
    extra = {"args": "x", "exc_info": "x", "levelname": "FATAL", "metres": "80"}
    record = {**RECORD, "name": "n", "text": "%0900000000d", "extra": extra}
    body = f"run.note('log', to='answer', record={record!r})"
    forged, _ = await outcomes_of(project, body)
    assert forged.score == 1.0
    [log] = (project.folder("answer_1") / "logs").glob("*.jsonl")
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    [entry] = [each for each in entries if each["logger"] == "n"]
    assert (entry["level"], entry["message"], entry["metres"]) == (
        "INFO",
        "%0900000000d",
        "80",
    )
    assert capfd.readouterr().err == ""


class BrokenBrowser:
    """A browser with a bug that one page meets."""

    async def capture_page(self, url, _logger):
        """Capture the other pages."""
        if "odd" in url:
            raise ZeroDivisionError("a bug in a parser")
        return None, f"The page {url}."


async def test_a_bug_that_a_page_meets_costs_one_leaf(tmp_path):
    project = Project(tmp_path)
    project.add_answer()
    claims = {name: ("The lake is deep.", f"https://{name}.example/") for name in ("odd", "even")}
    project.add_script(claims)
    captures = SharedCaptures.by(BrokenBrowser())
    [outcome] = await evaluate(project, ClaimJudge(), captures=captures)
    assert outcome.score == 0.5
    nodes = tree_nodes(outcome.result.document)
    odd, even = nodes["odd"], nodes["even"]
    assert (odd["evidence"]["decided_by"], odd["evidence"]["reason"]) == (
        "error",
        "ZeroDivisionError: a bug in a parser",
    )
    assert even["status"] == "passed"
    [log] = (project.folder() / "logs").glob("*.log")
    assert ", in capture_page\n" in log.read_text()
