"""A judge on loopback: OpenAI's and Azure's chat completions, Anthropic's and Bedrock's messages.

with JudgeServer(reply=lambda body: {"reasoning": "...", "result": True}) as server:
    client = LLMClient("openai", is_async=True, base_url=server.base_url)

Faults come before replies: each request takes the next one, ``None`` standing for an ordinary
reply.
"""

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from pydantic import BaseModel

Body = dict[str, Any]
Content = str | Mapping[str, Any] | list[Any] | BaseModel
Reply = Content | Callable[[Body], Content]

VERDICT = {"reasoning": "the page says so", "result": True}


@dataclass(frozen=True)
class Fault:
    """One reply that is not the ordinary one; see the functions below for the usual ones."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | Mapping[str, Any] | None = None
    content: Content | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str = "stop"
    has_choices: bool = True
    drops: str = ""


def status(
    status_code: int,
    message: str = "no",
    /,
    *,
    headers: Mapping[str, str] | None = None,
    **error: Any,
) -> Fault:
    """Answer with an HTTP status and OpenAI's error object."""
    return Fault(
        status=status_code,
        headers=headers or {},
        body={"error": {"message": message, **error}},
    )


def claude_error(
    status_code: int, message: str, kind: str = "invalid_request_error", **headers: str
) -> Fault:
    """Answer with an HTTP status and Anthropic's error object; Bedrock's has the message alone."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    error = {"type": kind, "message": message}
    return Fault(
        status=status_code,
        headers=named,
        body={"type": "error", "error": error, "message": message},
    )


def rate_limited(**headers: str) -> Fault:
    """Answer 429; ``rate_limited(retry_after="2")`` says when to come back."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status(429, "Rate limit reached", headers=named, code="rate_limit_exceeded")


def drop_before_reply() -> Fault:
    """Close the connection without a byte."""
    return Fault(drops="before")


def drop_mid_reply() -> Fault:
    """Close the connection within the body."""
    return Fault(drops="within")


def broken_body(text: str = '{"choices": [{"mess') -> Fault:
    """Answer 200 with a body that is not JSON."""
    return Fault(body=text)


def content(text: Content, finish_reason: str = "stop") -> Fault:
    """Answer with this content, whatever was asked."""
    return Fault(content=text, finish_reason=finish_reason)


def completion(text: Content, finish_reason: str = "stop", **more: Any) -> Body:
    """Return the body of a completion, to which ``message`` and ``usage`` may be given."""
    message = {"role": "assistant", "content": _as_text(text), **more.pop("message", {})}
    return {"choices": [{"message": message, "finish_reason": finish_reason}], "model": "m", **more}


def truncated(text: str = '{"reasoning": "the pa') -> Fault:
    """Answer with content cut off at the token limit."""
    return Fault(content=text, finish_reason="length")


def refusal(text: str = "I can't help with that.") -> Fault:
    """Answer with the model's refusal."""
    return Fault(message={"content": None, "refusal": text}, finish_reason="refusal")


def content_filter() -> Fault:
    """Answer with a reply that a filter emptied."""
    return Fault(content="", finish_reason="content_filter")


def azure_content_filter() -> Fault:
    """Refuse the prompt as Azure's filter does."""
    return status(
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's content management "
        "policy.",
        code="content_filter",
        param="prompt",
        innererror={"code": "ResponsibleAIPolicyViolation"},
    )


def context_too_long() -> Fault:
    """Refuse the prompt for its length as OpenAI does."""
    return status(
        400,
        "This model's maximum context length is 8 tokens.",
        code="context_length_exceeded",
    )


def no_choices() -> Fault:
    """Answer 200 with an empty list of choices."""
    return Fault(has_choices=False)


@dataclass
class RateLimit:
    """So many requests in each window of time; 429 for the rest, as OpenAI does it.

    Args:
        requests: in a window.
        window_s: a minute, scaled down.
        tells: whether each reply says what is left; a refusal always says when to come back.
    """

    requests: int
    window_s: float
    tells: bool = True
    refusals: int = 0
    _ends_s: float = 0.0
    _left: int = 0

    def admit(self) -> tuple[bool, dict[str, str]]:
        """Tell whether one more request is let in, with the headers that say what is left."""
        now_s = time.monotonic()
        if now_s >= self._ends_s:
            self._ends_s, self._left = now_s + self.window_s, self.requests
        reset_ms = f"{(self._ends_s - now_s) * 1000 + 1:.0f}"
        is_let_in = self._left > 0
        self._left -= is_let_in
        self.refusals += not is_let_in
        told = {
            "x-ratelimit-limit-requests": str(self.requests),
            "x-ratelimit-remaining-requests": str(self._left),
            "x-ratelimit-reset-requests": f"{reset_ms}ms",
        }
        return is_let_in, (told if self.tells else {}) | (
            {} if is_let_in else {"retry-after-ms": reset_ms}
        )


@dataclass(frozen=True)
class Call:
    """One request as it arrived; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Body


class JudgeServer:
    """Serves from a thread while the ``with`` block runs.

    Args:
        reply: the content of ordinary replies, or what computes it from a request's body; mappings
            and models are sent as JSON.
        faults: what to answer instead, request by request, or a function of the body (and ``None``
            for an ordinary reply).
        refused_modes: response formats answered with 400: ``json_schema``, ``json_object``.
        takes_temperature: whether requests with a temperature are answered.
        input_tokens, cached_tokens, output_tokens: the usage that each reply reports.
        rate_limit: what is let in, before faults come.
        models: the list at ``/models``; ``None`` for a server without one.
        served: the model named in replies; ``None`` for a dated version of the one asked.
        port: where it listens, 0 for any free one, at this ``host``.
    """

    def __init__(
        self,
        reply: Reply = VERDICT,
        *,
        faults: Sequence[Fault | None] | Callable[[Body], Fault | None] = (),
        refused_modes: Sequence[str] = (),
        takes_temperature: bool = True,
        input_tokens: int = 100,
        cached_tokens: int = 60,
        output_tokens: int = 10,
        rate_limit: RateLimit | None = None,
        models: Sequence[str] | None = None,
        served: str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
    ) -> None:
        self.models = models
        self.served = served
        self._rate_limit = rate_limit
        self.calls: list[Call] = []
        self.most_at_once = 0
        self.input_tokens = input_tokens
        self.cached_tokens = cached_tokens
        self.output_tokens = output_tokens
        self._reply = reply
        self._faults = faults
        self._refused_modes = refused_modes
        self._takes_temperature = takes_temperature
        self._at_once = 0
        self._lock = threading.Lock()
        self._http = _Server(self, host, port)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        """Return the port at which it listens."""
        return self._http.server_port

    @property
    def url(self) -> str:
        """Return the address to give as Azure's endpoint or Bedrock's base URL."""
        return f"http://{self._http.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """Return the address to give as OpenAI's base URL."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[Body]:
        """Return the body of each request, in order of arrival."""
        return [call.body for call in self.calls]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._http.drop_connections()

    def answer(self, call: Call) -> Fault:
        """Record the request and choose what to answer."""
        with self._lock:
            index = len(self.calls)
            self.calls.append(call)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            is_let_in, told = self._rate_limit.admit() if self._rate_limit else (True, {})
        if not is_let_in:
            return rate_limited(**told)
        return (
            replace(self._ordinary(call, index), headers=told)
            if told
            else self._ordinary(call, index)
        )

    def done(self) -> None:
        """Record that a request has been answered."""
        with self._lock:
            self._at_once -= 1

    def _ordinary(self, call: Call, index: int) -> Fault:
        if not call.path.partition("?")[0].endswith(
            ("/chat/completions", "/invoke", "/v1/messages")
        ):
            return status(404, f"no such path: {call.path}")
        if call.path == "/v1/messages" and (mistake := _mistake_in_message(call)):
            return claude_error(400, mistake)
        refused = self._refused(call.body)
        if refused is not None:
            return refused
        if callable(self._faults):
            fault = self._faults(call.body)
        else:
            fault = self._faults[index] if index < len(self._faults) else None
        return fault or Fault(
            content=self._reply(call.body) if callable(self._reply) else self._reply
        )

    def _refused(self, body: Body) -> Fault | None:
        mode = body.get("response_format", {}).get("type")
        if mode in self._refused_modes:
            return status(
                400,
                f"response_format of type {mode} is not supported",
                param="response_format",
            )
        if "temperature" in body and not self._takes_temperature:
            return status(
                400,
                "Unsupported value: 'temperature' does not support 0.",
                param="temperature",
            )
        return None


def _mistake_in_message(call: Call) -> str | None:
    """Return why Anthropic's API would refuse the form of a request."""
    body = call.body
    turns = body.get("messages", ())
    blocks = [block for turn in turns for block in turn["content"] if isinstance(block, dict)]
    tools = [tool["name"] for tool in body.get("tools", ())]
    mistakes = {
        "anthropic-version: header is required": "anthropic-version" not in call.headers,
        "model, max_tokens, messages: Field required": not {
            "model",
            "max_tokens",
            "messages",
        }
        <= body.keys(),
        "messages: Unexpected role": any(
            turn["role"] not in ("user", "assistant") for turn in turns
        ),
        "messages: Input tag": any(block["type"] not in ("text", "image") for block in blocks),
        "messages: text content blocks must be non-empty": {"type": "text", "text": ""} in blocks,
        "Extra inputs are not permitted": "response_format" in body or "reasoning_effort" in body,
        "tool_choice: not found in tools": "tool_choice" in body
        and body["tool_choice"]["name"] not in tools,
    }
    return next((mistake for mistake, is_made in mistakes.items() if is_made), None)


def prompt_text(body: Body) -> str:
    """Return all text of a request's messages, the system's included."""
    system = [{"content": body.get("system", "")}]
    return "\n".join(
        text for message in [*system, *body["messages"]] for text in _texts(message["content"])
    )


def image_urls(body: Body) -> list[str]:
    """Return the URLs of a chat completion request's images."""
    parts = [
        part
        for message in body["messages"]
        for part in message["content"]
        if isinstance(part, dict)
    ]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, judge: JudgeServer, host: str, port: int) -> None:
        self.judge = judge
        self.host = host
        self._open: set[socket.socket] = set()
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Keep the connection, to be closed with the server."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection whose client is gone."""
        self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        """Close what clients keep open, as the end of a process does."""
        for request in list(self._open):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent where a client went away; anything else is a fault of the test itself."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Write nothing to stderr."""

    def do_GET(self) -> None:
        models = self.server.judge.models
        is_list = models is not None and self.path.partition("?")[0].endswith("/models")
        fault = (
            Fault(body={"object": "list", "data": [{"id": name} for name in models]})
            if is_list
            else None
        )
        fault = fault or status(404, f"no such path: {self.path}")
        self._send(fault, self._payload(fault, {}))

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        content = self.rfile.read(length)
        if len(content) < length:
            raise ConnectionResetError("the client went away in the middle of its request")
        body = json.loads(content)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            fault = self.server.judge.answer(Call(self.path, headers, body))
        finally:
            # Before it is sent: who has the answer may ask again.
            self.server.judge.done()
        self._send(fault, self._payload(fault, body))

    def _payload(self, fault: Fault, body: Body) -> bytes:
        if fault.body is not None:
            return (fault.body if isinstance(fault.body, str) else json.dumps(fault.body)).encode()
        describe = (
            self._claude_message
            if self.path.startswith(("/model/", "/v1/messages"))
            else self._chat_completion
        )
        return json.dumps(describe(fault, body)).encode()

    def _chat_completion(self, fault: Fault, body: Body) -> Body:
        judge = self.server.judge
        message = {
            "role": "assistant",
            "content": _as_text(fault.content),
            "refusal": None,
            **fault.message,
        }
        choice = {"index": 0, "message": message, "finish_reason": fault.finish_reason}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1700000000,
            "model": judge.served or f"{body.get('model', 'deployed')}-2025-01-01",
            "system_fingerprint": "fp_1",
            "choices": [choice] if fault.has_choices else [],
            "usage": {
                "prompt_tokens": judge.input_tokens,
                "completion_tokens": judge.output_tokens,
                "total_tokens": judge.input_tokens + judge.output_tokens,
                "prompt_tokens_details": {"cached_tokens": judge.cached_tokens},
            },
        }

    def _claude_message(self, fault: Fault, body: Body) -> Body:
        judge = self.server.judge
        text = _as_text(fault.message.get("refusal") or fault.content)
        block: Body = {"type": "text", "text": text}
        if "tools" in body and fault.content is not None and not isinstance(fault.content, str):
            block = {
                "type": "tool_use",
                "id": "toolu_1",
                "name": body["tools"][0]["name"],
                "input": json.loads(text),
            }
        stops = {"stop": "end_turn", "length": "max_tokens"}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-served",
            "content": [block] if fault.has_choices else [],
            "stop_reason": stops.get(fault.finish_reason, fault.finish_reason),
            "usage": {
                "input_tokens": judge.input_tokens - judge.cached_tokens,
                "cache_read_input_tokens": judge.cached_tokens,
                "cache_creation_input_tokens": 0,
                "output_tokens": judge.output_tokens,
            },
        }

    def _send(self, fault: Fault, payload: bytes) -> None:
        if fault.drops:
            self.close_connection = True
        if fault.drops == "before":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(fault.status)
        headers = {
            "Date": self.date_time_string(),
            "Content-Type": "application/json",
            "Content-Length": str(len(payload)),
        }
        for name, value in {**headers, **fault.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload[: len(payload) // 2] if fault.drops else payload)


def _as_text(content: Content | None) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, BaseModel):
        return content.model_dump_json()
    return json.dumps(content)
