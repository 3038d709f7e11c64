"""Agents that answer a question: a program, a chat model, or a model with web search."""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from pydantic import BaseModel

from mind2web2.errors import Mind2Web2Error, UsageError
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import price_usd
from mind2web2.llm_client.settings import (
    ADDRESS_GIVEN,
    check_address,
    check_keys,
    variable,
)
from mind2web2.results.answers import MAX_ANSWER_BYTES
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.retry_after import retry_after_s

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.responses import Response

POLL_S = 2.0
# OpenAI's price of one web search, beside the tokens.
SEARCH_USD = 0.01
_PR_SET_PDEATHSIG = 1
_PLACEHOLDERS = (
    "question_file",
    "question",
    "answer_file",
    "meta_file",
    "task_id",
    "run",
)
# A shell's ${NAME} and a template's {{NAME}} are the program's own.
_PLACEHOLDER = re.compile(r"(?<![${])\{([A-Za-z_]\w*)\}")
_CANNOT_RUN = (126, 127)


class AgentFailedError(Mind2Web2Error):
    """The agent failed at a question: the run counts as 0 once its retries are used up."""

    def __init__(self, text: str, cost_usd: float | None = None) -> None:
        super().__init__(text)
        self.cost_usd = cost_usd


class AgentUnavailableError(Mind2Web2Error):
    """The server of the agent's model failed, which says nothing about the agent."""

    def __init__(self, text: str, wait_s: float | None = None) -> None:
        super().__init__(text)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Question:
    """A task's question for one run; the agent gets nothing of the rubric.

    Args:
        scratch: an empty folder for this attempt.
        log: the file that keeps the program's output.
        response_id: of a response that an earlier, killed command began.
        keep_response_id: stores the id of a response that begins.
    """

    task_id: str
    run: int
    text: str
    scratch: Path
    log: Path
    timeout_s: float
    response_id: str | None
    keep_response_id: Callable[[str | None], None]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, possibly empty, and its cost where it is known."""

    text: str
    cost_usd: float | None = None


class Agent(Protocol):
    """Answers questions."""

    name: str
    reports_cost: bool

    async def ask(self, question: Question) -> Reply:
        """Answer one question.

        Raises:
            AgentFailedError: the agent failed.
            TimeoutError: it took longer than ``timeout_s``.
            AgentUnavailableError: its server failed.
            UsageError: no question can be answered.
        """


class CommandAgent:
    """A program that is started for each question, without a shell.

    Args:
        command: its words; ``{question_file}``, ``{question}``, ``{answer_file}``, ``{meta_file}``,
            ``{task_id}`` and ``{run}`` are replaced. The answer is ``{answer_file}``, else standard
            output.

    Raises:
        UsageError: the program does not exist, or its command takes no question or has an unknown
            placeholder.
    """

    def __init__(self, command: Sequence[str], name: str) -> None:
        self.name = name
        self._command = command
        joined = " ".join(command)
        if not command or ("{question_file}" not in joined and "{question}" not in joined):
            raise UsageError(
                "--command needs {question_file} or {question}, which stand for the question"
            )
        if unknown := [name for name in _PLACEHOLDER.findall(joined) if name not in _PLACEHOLDERS]:
            known = ", ".join(f"{{{name}}}" for name in _PLACEHOLDERS)
            raise UsageError(
                f"--command: unknown placeholder {{{unknown[0]}}}: known are {known}; braces of "
                "the "
                f"program's own take a space: {{ {unknown[0]} }}"
            )
        if shutil.which(command[0]) is None:
            raise UsageError(f"--command: there is no program {command[0]}")
        self.reports_cost = "{meta_file}" in joined
        self._writes_file = "{answer_file}" in joined
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    @classmethod
    def parse(cls, command: str) -> CommandAgent:
        """Return the agent of a command line.

        Raises:
            UsageError: its quotes do not match, or as the constructor.
        """
        try:
            return cls(shlex.split(command), f"command {command}")
        except ValueError as error:
            raise UsageError(f"--command cannot be parsed: {error}") from error

    @classmethod
    def of_callable(cls, place: str) -> CommandAgent:
        """Return the agent that calls ``module:function`` in a process of its own.

        Raises:
            UsageError: there is no such function.
        """
        module, _, function = place.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
            raise UsageError(f"--callable {place!r} is not of the form module:function")
        files = ("{question_file}", "{answer_file}", "{meta_file}")
        call = (
            sys.executable,
            "-m",
            "mind2web2.plugins.agents.agents",
            module,
            function,
        )
        loaded = subprocess.run(
            call,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if loaded.returncode != 0:
            reason = (loaded.stderr.strip().splitlines() or [f"exit status {loaded.returncode}"])[
                -1
            ]
            raise UsageError(f"--callable {place} cannot be loaded: {reason}")
        return cls((*call, *files), f"callable {place}")

    async def ask(self, question: Question) -> Reply:
        """Run the program; its process group is killed when the time is up."""
        files = {
            name: question.scratch / f"{name}.txt"
            for name in ("question_file", "answer_file", "meta_file")
        }
        files["question_file"].write_text(question.text, encoding="utf-8")
        values = {name: str(path.absolute()) for name, path in files.items()}
        values |= {
            "question": question.text,
            "task_id": question.task_id,
            "run": str(question.run),
        }
        words = [_fill_in(word, values) for word in self._command]
        answer = files["answer_file"]
        with (
            question.log.open("ab") as log,
            log if self._writes_file else answer.open("wb") as output,
        ):
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                start_new_session=True,
                preexec_fn=self._die_with_parent if self._libc else None,
            )
            try:
                async with asyncio.timeout(question.timeout_s):
                    status = await process.wait()
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if status in _CANNOT_RUN:
            raise UsageError(
                f"the agent's program cannot run (exit status {status}): see {question.log}"
            )
        cost_usd = self._cost(files["meta_file"])
        if status != 0:
            raise AgentFailedError(f"exit status {status}, see {question.log.name}", cost_usd)
        try:
            return Reply(
                read_regular_file(answer, MAX_ANSWER_BYTES).decode("utf-8-sig"),
                cost_usd,
            )
        except FileNotFoundError:
            return Reply("", cost_usd)
        except (OSError, UnicodeDecodeError) as error:
            raise AgentFailedError(f"its answer cannot be read: {error}", cost_usd) from error

    def _die_with_parent(self) -> None:
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def _cost(self, meta_file: Path) -> float | None:
        try:
            cost = json.loads(read_regular_file(meta_file))["cost_usd"]
            return cost if cost is None else max(0.0, float(cost))
        except (OSError, ValueError, LookupError, TypeError):
            return None


def _fill_in(word: str, values: dict[str, str]) -> str:
    parts = word.split("{")
    for position, part in enumerate(parts[1:], start=1):
        name, closing, rest = part.partition("}")
        parts[position] = values[name] + rest if closing and name in values else "{" + part
    return "".join(parts)


class ModelAgent:
    """A model of an OpenAI-compatible server, asked by chat completions or by the Responses API.

    Args:
        with_search: use the Responses API with web search, in the background.

    Raises:
        UsageError: key or address is missing or invalid.
    """

    def __init__(self, model: str, base_url: str | None, *, with_search: bool) -> None:
        address, key = (
            base_url or variable("OPENAI_BASE_URL"),
            variable("OPENAI_API_KEY"),
        )
        if not key and (not address or "api.openai.com" in address):
            raise UsageError(
                "no key for the agent's model: set OPENAI_API_KEY (or, for a server that needs "
                "none, give "
                "--base_url)"
            )
        check_keys({"OPENAI_API_KEY": key})
        if address:
            check_address(address, ADDRESS_GIVEN if base_url else "OPENAI_BASE_URL")
        self.name = f"{'openai_responses' if with_search else 'chat'} {model}"
        self.reports_cost = price_usd(Usage(1000), model) is not None
        # The SDK insists on a key.
        self._model, self._address, self._key = model, address or None, key or "none"
        self._with_search = with_search

    async def ask(self, question: Question) -> Reply:
        """Ask the model; a response in the background is cancelled when the time is up."""
        from openai import AsyncOpenAI  # takes two seconds

        async with AsyncOpenAI(api_key=self._key, base_url=self._address, max_retries=0) as client:
            with _translate_errors():
                return await (self._respond if self._with_search else self._chat)(client, question)

    async def _chat(self, client: AsyncOpenAI, question: Question) -> Reply:
        async with asyncio.timeout(question.timeout_s):
            reply = await client.chat.completions.create(
                model=self._model, messages=[{"role": "user", "content": question.text}]
            )
        used = reply.usage
        details = used and used.prompt_tokens_details
        cached = (details and details.cached_tokens) or 0
        usage = used and Usage(
            input_tokens=used.prompt_tokens,
            output_tokens=used.completion_tokens,
            cached_tokens=cached,
        )
        text = (reply.choices[0].message.content if reply.choices else None) or ""
        return Reply(text, price_usd(usage, self._model) if usage else None)

    async def _respond(self, client: AsyncOpenAI, question: Question) -> Reply:
        import openai

        response = await self._begin(client, question)
        # An interrupted command leaves the id, and the next one continues.
        try:
            async with asyncio.timeout(question.timeout_s):
                while response.status in ("queued", "in_progress"):
                    await asyncio.sleep(POLL_S)
                    response = await client.with_options(max_retries=5).responses.retrieve(
                        response.id
                    )
        except TimeoutError:
            with suppress(openai.OpenAIError):
                await client.responses.cancel(response.id)
            question.keep_response_id(None)
            raise
        question.keep_response_id(None)
        if response.status != "completed":
            problem = response.error or response.incomplete_details
            cost_usd = _response_cost(response, self._model)
            raise AgentFailedError(f"response {response.status}: {_reason(problem)}", cost_usd)
        return Reply(response_text(response), _response_cost(response, self._model))

    async def _begin(self, client: AsyncOpenAI, question: Question) -> Response:
        import openai

        if question.response_id is not None:
            with suppress(openai.NotFoundError):
                return await client.responses.retrieve(question.response_id)
        response = await client.responses.create(
            model=self._model,
            input=question.text,
            tools=[{"type": "web_search"}],
            background=True,
        )
        question.keep_response_id(response.id)
        return response


def _reason(problem: Any) -> str:  # an error, or the details of an incomplete response
    return str(
        getattr(problem, "message", None) or getattr(problem, "reason", None) or "no reason given"
    )


def response_text(response: Response) -> str:
    """Return the text of a response with its URL citations as markdown links."""
    parts = []
    for item in response.output:
        if item.type == "message":
            parts += [part for part in item.content if part.type == "output_text"]
    return "\n\n".join(_with_links(part.text, part.annotations) for part in parts)


def _with_links(text: str, annotations: Sequence[Any]) -> str:  # the SDK's union of annotations
    cited = [note for note in annotations if note.type == "url_citation"]
    for note in sorted(cited, key=lambda note: note.end_index, reverse=True):
        if note.url in text[note.start_index : note.end_index]:
            continue  # the model wrote the link itself
        title = (note.title or urlsplit(note.url).netloc).translate({ord("["): "(", ord("]"): ")"})
        url = note.url.replace("(", "%28").replace(")", "%29")
        before = text[: note.end_index]
        after = text[note.end_index :]
        text = f"{before} ([{title}]({url})){after}"
    return text


def _response_cost(response: Response, model: str) -> float | None:
    used = response.usage
    if used is None:
        return None
    cached = used.input_tokens_details.cached_tokens if used.input_tokens_details else 0
    usage = Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=cached,
    )
    tokens = price_usd(usage, model)
    searches = sum(item.type == "web_search_call" for item in response.output)
    return None if tokens is None else tokens + searches * SEARCH_USD


@contextmanager
def _translate_errors() -> Iterator[None]:
    import openai

    try:
        yield
    except openai.APIStatusError as error:
        if error.status_code in (408, 409, 429) or error.status_code >= 500:
            wait_s = retry_after_s(error.response.headers)
            raise AgentUnavailableError(
                f"HTTP {error.status_code}: {error.message}", wait_s
            ) from error
        if error.status_code in (400, 413, 422):
            raise AgentFailedError(f"HTTP {error.status_code}: {error.message}") from error
        raise UsageError(
            f"the agent's server refuses (HTTP {error.status_code}): {error.message}"
        ) from error
    except openai.OpenAIError as error:
        raise AgentUnavailableError(f"{type(error).__name__}: {error}") from error


class _FunctionReply(BaseModel):
    """The return value of a function of ``--callable``.

    Its types are checked with the function's name.
    """

    answer: object = None
    cost_usd: object = None


def call_function(module: str, function: str, *files: str) -> None:
    """Write the reply of the function that ``--callable`` names, in a process of its own.

    It is a text, or a mapping with ``answer`` and perhaps ``cost_usd``.

    Args:
        files: question, answer and meta file; without them, the function is only loaded.
    """
    call = reduce(getattr, function.split("."), import_module(module))
    if not callable(call):
        raise TypeError(f"{module}:{function} is not a function")
    if not files:
        return
    question_file, answer_file, meta_file = files
    reply = call(Path(question_file).read_text(encoding="utf-8"))
    if inspect.isawaitable(reply):
        reply = asyncio.run(_await_reply(reply))
    fields = reply if isinstance(reply, dict) else {"answer": reply}
    function_reply = _FunctionReply.model_validate(fields)
    Path(meta_file).write_text(json.dumps({"cost_usd": function_reply.cost_usd}), encoding="utf-8")
    if not isinstance(function_reply.answer, str | None):
        raise TypeError(
            f"{module}:{function} returned {type(function_reply.answer).__name__}, not a text"
        )
    Path(answer_file).write_text(function_reply.answer or "", encoding="utf-8")


async def _await_reply(reply: object) -> object:
    return await reply  # type: ignore[misc]  # checked by the caller


if __name__ == "__main__":
    call_function(*sys.argv[1:])
