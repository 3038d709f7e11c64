"""Messages between a run and the process of a script."""

import asyncio
import json
import logging
import os
import socket
from collections import Counter
from multiprocessing.connection import Connection

import pytest
from pydantic import BaseModel, Field

from mind2web2.errors import CaptureError, JudgeError, JudgeUnavailableError
from mind2web2.judge.protocol import JudgeLedger, Rejection
from mind2web2.judge.store import judgment_key
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.llm_client.structured_output import schema_of
from mind2web2.pages.captures import DoubtfulPageError, PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.scripts.isolation.rpc import (
    RpcConnection,
    encoded,
    error_as_json,
    error_from,
    fields_of,
    ledger_as_json,
    ledger_from,
    page_from,
    schema_proxy,
)
from mind2web2.scripts.isolation.run import BlobStore, relay_record
from mind2web2.scripts.isolation.worker import RelayHandler


class Lake(BaseModel):
    """A lake."""

    name: str = Field(description="as people call it")
    depths: list[float] = []
    neighbour: "Lake | None" = None


@pytest.mark.parametrize(
    "error", [CaptureError("gone"), DoubtfulPageError("for now"), JudgeUnavailableError("out"), KeyError("x")]
)
def test_errors_are_what_they_were(error):
    """Ours by their class, others by its name."""
    told = error_from(error_as_json(error))
    assert (type(told).__name__, str(told)) == (type(error).__name__, str(error))
    assert isinstance(told, type(error)) == (not isinstance(error, KeyError))


def test_an_unknown_error_is_an_exception_of_its_name():
    """The name selects one of our errors, and nothing else of their module."""
    assert type(error_from({"name": "Literal"})).__bases__ == (Exception,)


def test_a_ledger_comes_back():
    """With every field, so that none that is added is left behind."""
    ledger = JudgeLedger(
        served=Counter({("m", None): 2, (None, "f"): 1}),
        first_created="a",
        last_created="b",
        usage=Usage(1, 2, 3, 4, 5, 6, 7, 0.5),
        rejections=[Rejection("node", None, "no")],
        doubts=["one"],
    )
    assert ledger_from(json.loads(json.dumps(ledger_as_json(ledger)))) == ledger
    assert vars_of(ledger).keys() == {name for name in vars_of(ledger) if vars_of(ledger)[name] is not None}


def vars_of(ledger):
    """Return a ledger's fields."""
    return {name: getattr(ledger, name) for name in type(ledger).__dataclass_fields__}


def test_a_page_comes_back():
    """Texts and images apart."""
    text, images = HashedText("deep"), (HashedText("image"),)
    page = PreparedPage(
        url="https://a.example",
        kind="web",
        sha256="1",
        text=text,
        text_chars=4,
        text_chars_stored=9,
        images=images,
        notes=("cut",),
        troubles=("bot wall",),
        times_halved=1,
        captured_at="now",
        doubt="odd",
    )
    assert page_from(json.loads(json.dumps(fields_of(page))), text, images) == page


def test_a_schema_proxy_asks_the_same_question():
    """By the key of its judgments, and by the schema that a model gets."""
    proxy = schema_proxy("Lake", json.loads(json.dumps(Lake.model_json_schema())))
    assert proxy is schema_proxy("Lake", Lake.model_json_schema())
    requests = [ChatRequest("m", [{"role": "user", "content": "?"}], template=each) for each in (Lake, proxy)]
    assert judgment_key(requests[0], 1) == judgment_key(requests[1], 1)
    assert schema_of(proxy) == schema_of(Lake)


class Server:
    """Replies as a question says."""

    def __init__(self):
        """Begin without notes."""
        self.notes = []
        self.asked = asyncio.Event()

    async def answered(self, message, ask_script):
        """Do what the question says."""
        if message["kind"] == "wait":
            self.asked.set()
            await asyncio.Event().wait()
        if message["kind"] == "check":
            return await ask_script("check", text=message["text"])
        if message["kind"] == "fail":
            raise JudgeError("it failed")
        return message["value"]

    def note(self, message):
        """Keep a note."""
        self.notes.append(message)


class Script:
    """The script's end of a connection."""

    def __init__(self, end):
        """Use this socket."""
        self._connection = Connection(os.dup(end.fileno()))

    def send(self, *messages):
        """Send messages."""
        for message in messages:
            self._connection.send_bytes(encoded(message))

    async def reply(self):
        """Return the next message."""
        return json.loads(await asyncio.to_thread(self._connection.recv_bytes))


@pytest.fixture
async def script():
    """Return a script's end of a connection, the server, the task that serves it, and the raw socket."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    server = Server()
    connection = RpcConnection(reader, writer, server)
    serving = asyncio.create_task(connection.result_message())
    yield Script(theirs), server, serving, theirs
    await connection.close()
    serving.cancel()
    await asyncio.wait({serving})
    await writer.wait_closed()
    theirs.close()


async def test_questions_are_answered_side_by_side(script):
    """One that takes its time keeps no other waiting; it may be taken back."""
    end, server, serving, _ = script
    end.send({"kind": "wait", "number": 1}, {"kind": "echo", "number": 2, "value": "deep"})
    assert await end.reply() == {"kind": "reply", "to": 2, "value": "deep"}
    await server.asked.wait()
    end.send({"kind": "cancel", "question": 1}, {"kind": "fail", "number": 3}, {"kind": "note"})
    assert (await end.reply())["error"] == {"name": "JudgeError", "text": "it failed"}
    end.send({"kind": "done", "result": 1})
    assert await serving == {"kind": "done", "result": 1}
    assert server.notes == [{"kind": "note"}]


async def test_a_script_is_asked_in_between(script):
    """As whether a reply fills its own template."""
    end, _, _, _ = script
    end.send({"kind": "check", "number": 1, "text": "?"})
    asked = await end.reply()
    end.send({"kind": "reply", "to": asked["number"], "value": "too shallow"})
    assert await end.reply() == {"kind": "reply", "to": 1, "value": "too shallow"}


@pytest.mark.parametrize(
    "sent",
    [
        {"kind": "echo", "number": "one"},
        {"kind": "cancel"},
        {"kind": "reply", "value": 1},
    ],
)
async def test_an_invalid_message_ends_the_service(script, sent):
    """The run then has no result of that answer."""
    end, _, serving, _ = script
    end.send(sent)
    with pytest.raises((KeyError, ValueError, TypeError)):
        await serving


def test_pages_are_kept_until_they_are_released():
    """Each text once, however often its page is asked for."""
    blobs = BlobStore()
    lake, same = HashedText("x" * 10), HashedText("x" * 10)
    numbers = [blobs.hold((text,)) for text in (lake, same)]
    blobs.release(numbers[0])
    assert blobs.text({"blob": numbers[1], "sha256": same.sha256}) is lake
    with pytest.raises(KeyError):
        blobs.text({"blob": numbers[0], "sha256": lake.sha256})


def test_a_record_is_logged_as_it_was(caplog):
    """With a format that does not fit its arguments, its traceback and extras, which are text."""
    sent = []
    handler = RelayHandler(lambda _kind, **content: sent.append(content), "answer")
    record = logging.makeLogRecord(
        {"msg": "100% sure of %d", "args": ("x",), "levelno": 40, "metres": 80, "name": "n"}
    )
    handler.emit(record)
    relay_record(json.loads(json.dumps(sent[0])), logging.getLogger("tests.relay"))
    [relayed] = caplog.records
    assert relayed.getMessage() == "100% sure of %d ('x',)"
    assert (relayed.levelno, relayed.created, relayed.metres) == (40, record.created, "80")
