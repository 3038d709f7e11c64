"""Messages between a run and the process of a script."""

import asyncio
import json
import logging
import os
import socket
import struct
from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from mind2web2.errors import (
    CaptureError,
    EvalScriptError,
    JudgeError,
    JudgeUnavailableError,
)
from mind2web2.judge.judgment import judgment_key
from mind2web2.judge.protocol import (
    JudgeLedger,
    QuestionContext,
)
from mind2web2.judge.service_request import ServiceRequest
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Usage
from mind2web2.llm_client.structured_output import schema_of
from mind2web2.pages.prepared_page import PageSettings
from mind2web2.prompts import HashedText
from mind2web2.rubric.verdicts import (
    Evidence,
    ExtractionRecord,
    PageCheck,
    PageShown,
    Rejection,
    ServiceAnswer,
    Vote,
)
from mind2web2.scripts.isolation import rpc
from mind2web2.scripts.isolation.messages import SentRequest, SentTemplate
from mind2web2.scripts.isolation.pass_process import PassService
from mind2web2.scripts.isolation.rpc import (
    MAX_MESSAGE_BYTES,
    Done,
    Failure,
    Message,
    RpcClient,
    RpcConnection,
    encode,
    served,
    validate,
)
from mind2web2.scripts.isolation.service import schema_proxy
from mind2web2.scripts.isolation.worker import RelayHandler
from mind2web2.utils.moments import ClockReading
from mind2web2.verification.run_questions import AskedForm, Given, Verification


class Lake(BaseModel):
    """A lake."""

    name: str = Field(description="as people call it")
    depths: list[float] = []
    neighbour: "Lake | None" = None


class Shade(str, Enum):  # noqa: UP042 (as scripts write it)
    """A script's own text."""

    DEEP = "deep"


class Depth(int):
    """A script's own number."""


@dataclass
class Message2:
    """A script's own class, which the run cannot import."""

    kind: str


def sent(content):
    """Return the JSON that the other side receives."""
    return json.loads(encode(Message("note", content)))["content"]


@pytest.mark.parametrize("error", [CaptureError("gone"), JudgeUnavailableError("out")])
def test_errors_of_the_run_are_what_they_were(error):
    received = validate(Failure, sent(Failure.of(error))).of_run()
    assert (type(received), str(received)) == (type(error), str(error))


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure("JudgeUnusableError", "the key is rejected"), "the key is rejected"),
        (Failure("JudgeAccessError", "x" * 30_000), "x" * 2_000),
        (Failure("KeyError", "'lake'"), "KeyError: 'lake'"),
    ],
)
def test_every_failure_of_a_script_is_its_own(failure, text):
    """Whatever class it names: the run notes failures of judge and machine itself."""
    assert type(failure.of_script()) is EvalScriptError
    assert str(failure.of_script()) == text


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Shade.DEEP, "deep"),
        (Depth(80), 80),
        ({"lakes": [Depth(3), (Shade.DEEP,)]}, {"lakes": [3, ["deep"]]}),
        (Lake(name="Como"), {"name": "Como"}),
        (HashedText("deep"), "deep"),
        (defaultdict(lambda: 0, {"lakes": 2}), {"lakes": 2}),
        ("half a character \ud83d", "half a character \ud83d"),
    ],
)
def test_a_scripts_own_objects_are_sent_as_plain_values(value, plain):
    """The run does not have their classes."""
    received = sent(value)
    assert received == plain
    assert type(received) is type(plain)


LEDGER = JudgeLedger(
    served=[("m", None), (None, "f")],
    created=["a", "b"],
    usage=Usage(1, 2, 3, 4, 5, 6, 7, 0.5),
    rejections=[Rejection("node", None, "no \ud83d")],
    doubts=["one"],
    services=[ServiceAnswer(request="r", key="k", sha256="s")],
)
CLOCK = ClockReading(moment="now", zone="UTC", is_read=True)
SHOWN = PageShown(kind="web", sha256="0", text_chars=1, text_chars_stored=2, images=0, notes=("n",))
VOTE = Vote(trial=1, supported=True, reasoning="read \ud83d", judgment="k")
EVIDENCE = Evidence(
    decided_by="judge",
    claim="a claim \ud83d",
    num_trials=3,
    pages=(PageCheck(url="u", outcome="supported", page=SHOWN, votes=(VOTE,)),),
)


@pytest.mark.parametrize(
    "content",
    [
        Done({"final_score": 1.0}, None, ["https://a.example/\ud83d"], ["b"], True),
        Done(clock=CLOCK),
        QuestionContext("verify", "leaf", "a claim \ud83d", None, 2),
        ServiceRequest("google_maps", "geocode", ["Como"], {"language": "it"}),
        Verification("a claim", None, "none", 3, True, ("gate",)),
        AskedForm("How deep?", "u", None, False, "depth"),
        Given("task", "answer \ud83d", PageSettings(max_text_chars=1)),
        SentRequest("m", [{"role": "user"}], SentTemplate("L", {}), 0.5, None, {}),
        EVIDENCE,
        LEDGER,
        ExtractionRecord(name="depth", page=SHOWN),
        ChatReply("text", usage=Usage(1), judgment="k"),
    ],
)
def test_objects_of_messages_come_back(content):
    found = validate(type(content), sent(content))
    assert found == content
    assert encode(Message("note", found)) == encode(Message("note", content))


@pytest.mark.parametrize(
    "content", [Message2("note"), Message2, sent, {"day": [Path()]}, {"a", "b"}]
)
def test_objects_that_are_no_json_are_refused_where_they_are_sent(content):
    """The script gets the error."""
    with pytest.raises(TypeError, match="cannot be sent to the run"):
        sent(content)


@pytest.mark.parametrize(
    "content",
    [
        Done(failure="no error"),
        Done(looked_up=[[]]),
        JudgeLedger(usage="x"),
        Done(clock=replace(CLOCK, moment=3)),
        QuestionContext("verify", trial="many"),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_objects_with_wrong_fields_are_refused(content):
    """The run does not work with them."""
    with pytest.raises(ValueError, match="validation error"):
        validate(type(content), sent(content))


def test_a_message_that_is_too_long_is_refused():
    ours, theirs = socket.socketpair()
    client = RpcClient(ours.detach())
    with theirs, pytest.raises(ValueError, match="the limit is 64 MB"):
        client.note("log", text="x" * (MAX_MESSAGE_BYTES + 1))
    client._close_in_fork()


def test_a_schema_proxy_asks_the_same_question():
    proxy = schema_proxy("Lake", json.loads(json.dumps(Lake.model_json_schema())))
    assert proxy is schema_proxy("Lake", Lake.model_json_schema())
    requests = [
        ChatRequest("m", [{"role": "user", "content": "?"}], template=each)
        for each in (Lake, proxy)
    ]
    assert judgment_key(requests[0], 1) == judgment_key(requests[1], 1)
    assert schema_of(proxy) == schema_of(Lake)


class Server:
    """Replies as a question says."""

    def __init__(self, connection):
        """Begin without notes."""
        self.notes = []
        self.asked = asyncio.Event()
        self._connection = connection

    @served
    async def wait(self) -> None:
        """Never reply."""
        self.asked.set()
        await asyncio.Event().wait()

    @served
    async def check(self, text: str) -> str:
        """Ask the script."""
        return await self._connection.ask("check", str, text=text)

    @served
    async def fail(self) -> None:
        """Raise an error."""
        raise JudgeError("it failed")

    def failure_of(self, question, error):
        """Name question and error."""
        return JudgeError(f"{question}: {error!r}")

    @served
    async def stumble(self) -> None:
        """Raise an unforeseen error."""
        raise ZeroDivisionError("a bug")

    @served
    async def odd(self) -> object:
        """Return what cannot be sent."""
        return {1}

    @served
    async def much(self) -> str:
        """Return a long text."""
        return "x" * 3_000_000

    @served
    async def echo(self, value: str) -> str:
        """Return the value."""
        return value

    @served
    def keep(self, note: str) -> None:
        """Keep a note."""
        self.notes.append(note)


class Script:
    """The script's end of a connection."""

    def __init__(self, end):
        """Use this socket."""
        self._connection = Connection(os.dup(end.fileno()))

    def ask(self, number, name, **arguments):
        """Ask a question."""
        self.send(Message("ask", arguments, name, number))

    def send(self, message):
        """Send a message."""
        self._connection.send_bytes(encode(message))

    async def reply(self):
        """Return the next message."""
        content = await asyncio.to_thread(self._connection.recv_bytes)
        return validate(Message, json.loads(content))


@pytest.fixture
async def script():
    """Return a script's end of a connection, its server, the server's task and the raw socket."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    connection = RpcConnection(reader, writer)
    server = Server(connection)
    serving = asyncio.create_task(connection.serve(server))
    yield Script(theirs), server, serving, theirs
    await connection.cancel_questions()
    serving.cancel()
    await asyncio.wait({serving})
    connection.close()
    await asyncio.sleep(0)
    theirs.close()


async def test_questions_are_answered_side_by_side(script):
    """A slow question does not delay the others, and may be cancelled."""
    end, server, serving, _ = script
    end.ask(1, "wait")
    end.ask(2, "echo", value="deep")
    assert await end.reply() == Message("reply", "deep", number=2)
    await server.asked.wait()
    end.send(Message("cancel", number=1))
    end.ask(3, "fail")
    end.send(Message("note", {"note": "x"}, "keep"))
    failed = await end.reply()
    assert (failed.kind, failed.number) == ("failure", 3)
    assert validate(Failure, failed.content) == Failure("JudgeError", "it failed")
    end.send(Message("done", Done(1)))
    assert await serving == Done(1)
    assert server.notes == ["x"]


async def test_a_script_is_asked_in_between(script):
    end, _, _, _ = script
    end.ask(1, "check", text="?")
    asked = await end.reply()
    end.send(Message("reply", "too shallow", number=asked.number))
    assert await end.reply() == Message("reply", "too shallow", number=1)


async def test_a_failure_in_between_is_the_scripts(script):
    end, _, _, _ = script
    end.ask(1, "check", text="?")
    asked = await end.reply()
    forged = Failure("JudgeAccessError", "forged")
    end.send(Message("failure", forged, number=asked.number))
    failed = await end.reply()
    assert validate(Failure, failed.content) == Failure("EvalScriptError", "forged")


@pytest.mark.parametrize(
    "invalid",
    [
        b"no JSON",
        b"1",
        encode(Message("unknown")),
        encode(Message("done", 1)),
        encode(Message("note", {"_": 1}, "__init__")),
        encode(Message("note", {}, "unknown")),
        encode(Message("note", {"other": 1}, "keep")),
        encode(Message("note", {"note": [1]}, "keep")),
        encode(Message("note", 1, "keep")),
    ],
)
async def test_an_invalid_message_ends_the_service(script, invalid):
    """The run then has no result of that answer."""
    _, _, serving, theirs = script
    Connection(os.dup(theirs.fileno())).send_bytes(invalid)
    with pytest.raises((ValueError, TypeError)):
        await serving


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("stumble", "stumble: ZeroDivisionError('a bug')"),
        ("odd", "odd: TypeError('a set cannot be sent to the run')"),
    ],
)
async def test_an_unforeseen_error_fails_as_the_service_says(script, question, text):
    """The script never gets the error itself, which it might take for a verdict."""
    end, _, _, _ = script
    end.ask(1, question)
    failed = await end.reply()
    assert validate(Failure, failed.content) == Failure("JudgeError", text)


async def test_replies_that_are_not_read_are_bounded(script, monkeypatch):
    monkeypatch.setattr(rpc, "MAX_WAITING_BYTES", 1_000_000)
    end, _, _, _ = script
    end.ask(1, "much")
    end.ask(2, "much")
    assert (await end.reply()).kind == "reply"
    failed = validate(Failure, (await end.reply()).content)
    assert failed == Failure("EvalScriptError", "the script left 1 MB of replies unread")


async def test_only_methods_that_serve_are_called(script):
    """A question to another one fails."""
    end, _, _, _ = script
    end.ask(1, "__init__", connection=None)
    assert (await end.reply()).kind == "failure"


async def test_a_message_that_is_announced_as_too_long_is_not_read(script):
    """The run would keep all of it in memory."""
    _, _, serving, theirs = script
    theirs.sendall(struct.pack("!i", MAX_MESSAGE_BYTES + 1))
    with pytest.raises(ValueError, match="bytes"):
        await serving


async def test_a_message_that_breaks_off_is_no_message(script):
    """The process was killed while it sent it."""
    _, _, serving, theirs = script
    theirs.sendall(struct.pack("!i", 100) + b"half")
    theirs.shutdown(socket.SHUT_RDWR)
    assert await serving is None


def test_a_record_is_logged_as_it_was(caplog):
    notes = []
    handler = RelayHandler(lambda _name, **arguments: notes.append(arguments), "answer")
    record = logging.makeLogRecord(
        {
            "msg": "100% sure of %d",
            "args": ("x",),
            "levelno": 40,
            "metres": 80,
            "name": "n",
        }
    )
    handler.emit(record)
    logger = logging.getLogger("tests.relay")
    service = PassService(None, None, logger, None)
    service.log(**sent(notes[0]))
    [relayed] = caplog.records
    assert relayed.getMessage() == "100% sure of %d ('x',)"
    assert (relayed.levelno, relayed.metres) == (40, "80")
