"""What crosses the border between a run and a script's process, and what does not get across."""

import asyncio
import json
import logging
import socket
from collections import Counter

import pytest
from pydantic import BaseModel, Field

from mind2web2.errors import CaptureError, EvalScriptError, JudgeError, JudgeUnavailableError
from mind2web2.judge.records import judgment_key
from mind2web2.judge.usage import JudgeLedger, Rejection
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.llm_client.structured_output import schema_of
from mind2web2.pages.captures import DoubtfulPageError
from mind2web2.pages.prepared import PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.scripts.isolation import host as held_texts
from mind2web2.scripts.isolation import host as link_module
from mind2web2.scripts.isolation.host import HeldTexts, ScriptLink
from mind2web2.scripts.isolation.logs import LogRelay
from mind2web2.scripts.isolation.rpc import (
    LENGTH,
    MAX_FRAME_BYTES,
    Frames,
    UnusableMessageError,
    error_as_json,
    error_from,
    fields_of,
    frame_of,
    ledger_as_json,
    ledger_from,
    page_from,
    told_template,
)


class Lake(BaseModel):
    """A lake."""

    name: str = Field(description="as people call it")
    depths: list[float] = []
    neighbour: "Lake | None" = None


@pytest.mark.parametrize("size", [1, 3, 100])
def test_messages_arrive_whole(size):
    """In whatever pieces, and with any text."""
    messages = [{"kind": "a", "text": "ü\ud800 \U0001f30a"}, {"kind": "b", "list": [1, None, 2.5]}]
    content = b"".join(map(frame_of, messages))
    frames = Frames()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert [message for piece in pieces for message in frames.add(piece)] == messages


@pytest.mark.parametrize(
    "frame",
    [
        LENGTH.pack(MAX_FRAME_BYTES + 1),
        LENGTH.pack(4) + b"{'a'",
        LENGTH.pack(2) + b"[]",
        LENGTH.pack(2) + b"{}",
        LENGTH.pack(10) + b'{"kind":1}',
        LENGTH.pack(200_000) + b"[" * 200_000,
    ],
    ids=["too long", "no JSON", "no object", "no kind", "another kind", "too deep"],
)
def test_what_is_no_message_is_refused(frame):
    """Before it is used for anything."""
    with pytest.raises(UnusableMessageError):
        list(Frames().add(frame))


@pytest.mark.parametrize(
    "error", [CaptureError("gone"), DoubtfulPageError("for now"), JudgeUnavailableError("out"), KeyError("x")]
)
def test_errors_are_what_they_were(error):
    """Ours by their class, others by its name."""
    told = error_from(error_as_json(error))
    assert (type(told).__name__, str(told)) == (type(error).__name__, str(error))
    assert isinstance(told, type(error)) == (not isinstance(error, KeyError))


@pytest.mark.parametrize("raw", [None, [], {}, {"name": "os.system"}, {"name": "Literal"}, {"name": 3}])
def test_no_error_is_made_of_anything_else(raw):
    """A name from there chooses among our errors, and calls nothing."""
    assert type(error_from(raw)).__bases__ == (Exception,)


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


def test_a_told_template_asks_the_same_question():
    """The key of its judgments, and what a model is told of it."""
    told = told_template("Lake", json.loads(json.dumps(Lake.model_json_schema())))
    assert told is told_template("Lake", Lake.model_json_schema())
    requests = [ChatRequest("m", [{"role": "user", "content": "?"}], template=each) for each in (Lake, told)]
    assert judgment_key(requests[0], 1) == judgment_key(requests[1], 1)
    assert schema_of(told) == schema_of(Lake)


class Host:
    """Stands where a run's answers come from."""

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
    """The other end of a link."""

    def __init__(self, connection):
        """Speak over this socket."""
        self._socket = connection
        self._frames = Frames()
        self.messages = []

    def send(self, *messages):
        """Send messages, or bytes as they are."""
        for message in messages:
            self._socket.sendall(message if isinstance(message, bytes) else frame_of(message))

    async def reply(self):
        """Return the next message."""
        while not self.messages:
            self.messages += self._frames.add(await asyncio.to_thread(self._socket.recv, 65536))
        return self.messages.pop(0)


@pytest.fixture
async def script():
    """Return a script's end of a link, the host, and what comes of serving it."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    host = Host()
    link = ScriptLink(reader, writer, host, LogRelay(logging.getLogger("tests.link")))
    serving = asyncio.create_task(link.until_done())
    yield Script(theirs), host, serving
    await link.close()
    serving.cancel()
    await asyncio.wait({serving})
    await writer.wait_closed()
    theirs.close()


async def test_questions_are_answered_side_by_side(script):
    """One that takes its time keeps no other waiting; it may be taken back."""
    end, host, serving = script
    end.send({"kind": "wait", "number": 1}, {"kind": "echo", "number": 2, "value": "deep"})
    assert await end.reply() == {"kind": "reply", "to": 2, "value": "deep"}
    await host.asked.wait()
    end.send({"kind": "cancel", "question": 1}, {"kind": "fail", "number": 3}, {"kind": "note"})
    assert (await end.reply())["error"] == {"name": "JudgeError", "text": "it failed"}
    end.send({"kind": "done", "result": 1})
    assert await serving == {"kind": "done", "result": 1}
    assert host.notes == [{"kind": "note"}]


async def test_a_script_is_asked_in_between(script):
    """As whether a reply fills its own template."""
    end, _, _ = script
    end.send({"kind": "check", "number": 1, "text": "?"})
    asked = await end.reply()
    end.send({"kind": "reply", "to": asked["number"], "value": "too shallow"})
    assert await end.reply() == {"kind": "reply", "to": 1, "value": "too shallow"}


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xff\xff\xff",
        {"kind": "echo", "number": "one"},
        {"kind": "cancel"},
        {"kind": "reply", "value": 1},
        {"kind": "log", "text": "no level"},
        {"kind": "log", "text": "x", "level": "high", "to": "answer", "name": "n", "created": 0},
        {"kind": "log", "text": "x", "level": float("inf"), "to": "answer", "name": "n", "created": 0},
        b"".join([frame_of({"kind": "wait", "number": 1})] * 2),
    ],
)
async def test_a_process_that_makes_no_sense_is_given_up(script, sent):
    """With words on what it did."""
    end, _, serving = script
    end.send(sent)
    with pytest.raises(UnusableMessageError, match=r"^sent a "):
        await serving


async def test_questions_do_not_pile_up(script, monkeypatch):
    """A process that does not wait for its replies is not served."""
    monkeypatch.setattr(link_module, "_MAX_QUESTION_BYTES", 1000)
    end, _, serving = script
    end.send(*({"kind": "wait", "number": number, "text": "x" * 100} for number in range(9)))
    with pytest.raises(UnusableMessageError, match=r"^asked questions of 1\d\d\d bytes at once$"):
        await serving


def test_pages_are_held_as_long_as_they_are_used(monkeypatch):
    """Each once, however often it is asked for; not more than any script uses."""
    monkeypatch.setattr(held_texts, "_MAX_CHARS", 25)
    held = HeldTexts()
    lake, sea = HashedText("x" * 10), HashedText("y" * 10)
    numbers = [held.hold((lake, sea, lake)) for _ in range(3)]
    with pytest.raises(EvalScriptError, match="does it store every page"):
        held.hold((HashedText("z" * 6),))
    for number in numbers[:2]:
        held.release(number)
    held.release(numbers[0])
    assert held.text({"held": numbers[2], "sha256": lake.sha256}) is lake
    with pytest.raises(KeyError):
        held.text({"held": numbers[0], "sha256": lake.sha256})
    held.release(numbers[2])
    assert held.hold((HashedText("z" * 25),)) not in numbers


@pytest.mark.parametrize("created", [float("nan"), float("inf"), -1, 1e30])
def test_a_time_that_cannot_be_shown_is_now(caplog, capsys, created):
    """What a process says of itself shows in no other place than the log."""
    relay = LogRelay(logging.getLogger("tests.relay"))
    caplog.handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    message = {"to": "answer", "name": "n", "level": 40, "text": "x", "created": created, "trace": None}
    relay.take({**message, "stack": None, "extra": {"getMessage": "no call"}})
    assert caplog.records[0].getMessage() == "x"
    assert 0 < caplog.records[0].created < 2**33
    assert capsys.readouterr() == ("", "")


def test_a_record_cannot_pose_as_another(caplog):
    """What comes with it has no say in what it is; and no logger is made for it."""
    relay = LogRelay(logging.getLogger("tests.relay"))
    told = {"name": "mind2web2.no_such_module", "level": 40, "text": "100% sure", "created": 1.0}
    extra = {"levelno": "10", "msg": "other", "metres": "80"}
    relay.take({**told, "to": "mind2web2", "trace": "Trace\nValueError: x", "stack": None, "extra": extra})
    [record] = caplog.records
    assert (record.getMessage(), record.levelno, record.metres) == ("100% sure", 40, "80")
    assert record.exc_text == "Trace\nValueError: x"
    assert "mind2web2.no_such_module" not in logging.Logger.manager.loggerDict
