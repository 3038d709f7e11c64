"""Messages between a run and the process of a script."""

import asyncio
import json
import logging
import os
import pickle
import socket
import struct
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from mind2web2.errors import CaptureError, JudgeError, JudgeUnavailableError
from mind2web2.judge.protocol import JudgeLedger, QuestionContext, Rejection
from mind2web2.judge.services import ServiceRequest
from mind2web2.judge.store import ServiceAnswer, judgment_key
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.llm_client.structured_output import schema_of
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import DoubtfulPageError
from mind2web2.pages.library import PageLibrary
from mind2web2.pages.prepared_page import PageSettings
from mind2web2.prompts import HashedText
from mind2web2.scripts.inputs import ClockReading, ScriptInputs
from mind2web2.scripts.isolation.rpc import (
    MAX_MESSAGE_BYTES,
    Done,
    Message,
    PageText,
    RpcConnection,
    decoded_by_run,
    encoded,
    encoded_by_script,
    schema_proxy,
)
from mind2web2.scripts.isolation.run import RunService
from mind2web2.scripts.isolation.worker import RelayHandler


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


class Call:
    """Calls a function in the process that unpickles it."""

    def __init__(self, *call):
        """Call the first with the others."""
        self.call = call

    def __reduce__(self):
        """Return the call."""
        return self.call[0], self.call[1:]


def refuse(blob, sha256):
    """Have no text."""
    raise KeyError((blob, sha256))


def sent(content):
    """Return what the run receives."""
    return decoded_by_run(encoded_by_script(Message("note", content)), refuse).content


@pytest.mark.parametrize(
    "error",
    [
        CaptureError("gone"),
        DoubtfulPageError("for now"),
        JudgeUnavailableError("out"),
        KeyError("x"),
    ],
)
def test_errors_are_what_they_were(error):
    """Ours keep their class, others its name, in both directions."""
    received = sent(error)
    assert repr(pickle.loads(encoded(Message("note", error))).content) == repr(received)
    assert (type(received).__name__, str(received)) == (
        type(error).__name__,
        str(error),
    )
    assert isinstance(received, type(error)) == (not isinstance(error, KeyError))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Shade.DEEP, "deep"),
        (Depth(80), 80),
        ({"lakes": [Depth(3), (Shade.DEEP,)]}, {"lakes": [3, ("deep",)]}),
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
    served=Counter({("m", None): 2, (None, "f"): 1}),
    first_created="a",
    last_created="b",
    usage=Usage(1, 2, 3, 4, 5, 6, 7, 0.5),
    rejections=[Rejection("node", None, "no \ud83d")],
    doubts=["one"],
    services=[ServiceAnswer(request="r", key="k", sha256="s")],
)
INPUTS = ScriptInputs(
    files={"a": None}, clock=ClockReading(moment="now", zone="UTC", is_read=True)
)


@pytest.mark.parametrize(
    "content",
    [
        Done(
            {"final_score": 1.0},
            None,
            LEDGER,
            {"https://a.example/\ud83d"},
            ["b"],
            is_listed=True,
        ),
        Done(inputs=INPUTS),
        QuestionContext("verify", "leaf", "a claim \ud83d", None, 2),
        PageSettings(max_text_chars=1),
        ServiceRequest("google_maps", "geocode", ["Como"], {"language": "it"}),
    ],
)
def test_objects_of_messages_come_back(content):
    """With every field."""
    assert sent(content) == content


@pytest.mark.parametrize(
    "content", [Message2("note"), Message2, sent, {"day": [Path()]}, Call(os.getpid)]
)
def test_objects_that_the_run_does_not_make_are_refused_where_they_are_sent(content):
    """The script gets the error."""
    with pytest.raises(TypeError, match="cannot be sent to the run"):
        sent(content)


@pytest.mark.parametrize(
    "content",
    [
        Done(ledger=3),
        Done(error="no error"),
        Done(looked_up=[[]]),
        Done(ledger=replace(LEDGER, usage="x")),
        Done(inputs=INPUTS.model_copy(update={"files": 3})),
        QuestionContext("verify", trial="many"),
    ],
)
def test_objects_with_wrong_fields_are_refused(content):
    """The run does not work with them."""
    with pytest.raises(ValueError, match="validation error"):
        sent(content)


def test_a_message_that_is_too_long_is_refused():
    """It is refused before it is sent."""
    with pytest.raises(ValueError, match="the limit is 64 MB"):
        encoded_by_script(Message("note", "x" * (MAX_MESSAGE_BYTES + 1)))


def test_a_schema_proxy_asks_the_same_question():
    """By the key of its judgments, and by the schema that a model gets."""
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

    def text(self, blob, sha256):
        """Return a text of the run."""
        return {(1, "a"): HashedText("page")}[blob, sha256]

    async def wait(self):
        """Never reply."""
        self.asked.set()
        await asyncio.Event().wait()

    async def check(self, text):
        """Ask the script."""
        return await self._connection.ask("check", text=text)

    async def fail(self):
        """Raise an error."""
        raise JudgeError("it failed")

    async def echo(self, value):
        """Return the value."""
        return value

    def keep(self, note):
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
        self._connection.send_bytes(encoded_by_script(message))

    async def reply(self):
        """Return the next message."""
        return pickle.loads(await asyncio.to_thread(self._connection.recv_bytes))


@pytest.fixture
async def script():
    """Return a script's end of a connection, the server, the task that serves it, and the raw socket."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    connection = RpcConnection(reader, writer)
    server = Server(connection)
    serving = asyncio.create_task(connection.served(server))
    yield Script(theirs), server, serving, theirs
    await connection.close()
    serving.cancel()
    await asyncio.wait({serving})
    await writer.wait_closed()
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
    error = (await end.reply()).content
    assert (type(error), str(error)) == (JudgeError, "it failed")
    end.send(Message("done", Done(1)))
    assert await serving == Done(1)
    assert server.notes == ["x"]


async def test_a_script_is_asked_in_between(script):
    """As whether a reply fills its own template."""
    end, _, _, _ = script
    end.ask(1, "check", text="?")
    asked = await end.reply()
    end.send(Message("reply", "too shallow", number=asked.number))
    assert await end.reply() == Message("reply", "too shallow", number=1)


async def test_a_text_of_the_run_is_sent_as_its_reference(script):
    """The run finds its own text in the place of the script's."""
    end, _, _, _ = script
    text = PageText("image a")
    text.reference = (1, "a")
    end.ask(1, "echo", value=[text])
    assert await end.reply() == Message("reply", ["page"], number=1)


@pytest.mark.parametrize(
    "invalid",
    [
        b"no pickle",
        encoded_by_script(Message("note", {}, "unknown"))[:-9] + b".",
        pickle.dumps(1),
        pickle.dumps(Message("note", {}, "keep")),
        pickle.dumps(Call(os.abort)),
        pickle.dumps(Call(getattr, Message, "__init__")),
        encoded_by_script(Message("done", 1)),
        encoded_by_script(Message("note", {"_": 1}, "__init__")),
        encoded_by_script(Message("note", {}, "unknown")),
        encoded_by_script(Message("note", {"other": 1}, "keep")),
        encoded_by_script(Message("note", 1, "keep")),
    ],
)
async def test_an_invalid_message_ends_the_service(script, invalid):
    """The run then has no result of that answer, and has run no code of the script."""
    _, _, serving, theirs = script
    Connection(os.dup(theirs.fileno())).send_bytes(invalid)
    with pytest.raises((pickle.UnpicklingError, AttributeError, TypeError)):
        await serving


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


async def test_a_pages_texts_are_kept_until_they_are_released(tmp_path):
    """A page that is requested twice has its texts in memory once."""
    cache = AnswerCache(CacheFileSys(tmp_path), PageLibrary())
    cache.put_web("https://a.example", "deep", None)
    service = RunService(
        None, ("task", "answer"), cache, None, logging.getLogger("tests.pages"), None
    )
    given = [
        await service.page("https://a.example", PageSettings(), False, False, True)
        for _ in range(2)
    ]
    [(first, sha256), (second, _)] = [
        (blob, digests[0]) for _, blob, _, digests in given
    ]
    assert service.text(first, sha256) is service.text(second, sha256)
    service.release(first)
    assert service.text(second, sha256) == given[1][2]
    with pytest.raises(KeyError):
        service.text(first, sha256)


def test_a_record_is_logged_as_it_was(caplog):
    """With a format that does not fit its arguments, its traceback and extras, which are text."""
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
    service = RunService(
        None, ("task", "answer"), None, None, logging.getLogger("tests.relay"), None
    )
    service.log(**sent(notes[0]))
    [relayed] = caplog.records
    assert relayed.getMessage() == "100% sure of %d ('x',)"
    assert (relayed.levelno, relayed.created, relayed.metres) == (
        40,
        record.created,
        "80",
    )
