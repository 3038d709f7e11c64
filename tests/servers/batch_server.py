"""A judge on loopback that also takes jobs, by OpenAI's and Azure's files and batches endpoints.

with BatchServer(reply=lambda body: {"reasoning": "...", "result": True}) as server:
    endpoints = batch_endpoints("openai", server.base_url)

A job goes a step on whenever it is looked at: validating, in_progress, finalizing, and how it ends.
The requests in it are answered as those sent on their own are, faults included.
"""

import email
import json
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from servers.judge_server import (
    VERDICT,
    Body,
    Call,
    Fault,
    JudgeServer,
    Reply,
    _Handler,
    status,
)

STEPS = ("validating", "in_progress", "finalizing")


@dataclass(frozen=True)
class Ending:
    """How a job ends.

    Args:
        answered: how many of its requests have been answered by then; ``None`` for all.
        error: code and message of what was wrong with the job as a whole.
        damage: what becomes of the file with the replies.
    """

    status: str = "completed"
    answered: int | None = None
    error: tuple[str, str] | None = None
    damage: Callable[[bytes], bytes] = bytes


@dataclass
class Job:
    """A job as it was handed in."""

    id: str
    input_file_id: str
    endpoint: str
    metadata: dict[str, str]
    requests: list[Body]
    ending: Ending
    step: int = 0
    status: str = STEPS[0]
    files: dict[str, str] = field(default_factory=dict)
    done: int = 0
    failed: int = 0
    errors: list[Body] = field(default_factory=list)


class BatchServer(JudgeServer):
    """Serves from a thread while the ``with`` block runs.

    Args:
        reply: as for ``JudgeServer``, which takes the other settings too.
        endings: how jobs end, in the order of their creation; completed beyond these.
        refusals: what an endpoint answers instead, from method and path; ``None`` for an ordinary
            answer.
        lost_replies: so many jobs are created without telling.

    Jobs from number ``held_from`` on stay in progress until that is changed.
    """

    def __init__(
        self,
        reply: Reply = VERDICT,
        *,
        endings: Sequence[Ending] = (),
        refusals: Callable[[str, str], Fault | None] = lambda _method, _path: None,
        lost_replies: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(reply, **settings)
        self._http.RequestHandlerClass = _BatchHandler
        self.jobs: list[Job] = []
        self.files: dict[str, bytes] = {}
        self.sizes_bytes: list[int] = []
        self.held_from: float = math.inf
        self.refusals = refusals
        self.lost_replies = lost_replies
        self._endings = endings
        self._turn = threading.Condition()

    @property
    def asked(self) -> list[str]:
        """Return the names of all requests in jobs, in order of arrival."""
        return [request["custom_id"] for job in self.jobs for request in job.requests]

    def keep(self, content: bytes) -> str:
        """Store a file and return its id."""
        with self._turn:
            return self._kept(content)

    def _kept(self, content: bytes) -> str:
        self.sizes_bytes.append(len(content))
        file_id = f"file-{len(self.sizes_bytes)}"
        self.files[file_id] = content
        return file_id

    def create(self, wanted: Body) -> Job:
        """Take a job on."""
        lines = self.files[wanted["input_file_id"]].decode().splitlines()
        requests = [json.loads(line) for line in lines]
        number = len(self.jobs)
        ending = self._endings[number] if number < len(self._endings) else Ending()
        job = Job(
            f"batch_{number + 1}",
            wanted["input_file_id"],
            wanted["endpoint"],
            wanted.get("metadata") or {},
            requests,
            ending,
        )
        self.jobs.append(job)
        return job

    def look(self, job: Job, handler: "_BatchHandler") -> None:
        """Let a job go a step on."""
        with self._turn:
            is_held = self.jobs.index(job) + 1 >= self.held_from and job.step == 1
            if job.step >= len(STEPS) or job.status == "cancelled" or is_held:
                return
            job.step += 1
            self._turn.notify_all()
            if job.step < len(STEPS):
                job.status = STEPS[job.step]
            else:
                self._end(job, handler)

    def wait_until_looked_at(self, number: int) -> None:
        """Return once somebody knows of the job with this number."""
        with self._turn:
            reached = self._turn.wait_for(
                lambda: len(self.jobs) >= number and self.jobs[number - 1].step, 60
            )
        assert reached, f"nobody has looked at job {number}"

    def _end(self, job: Job, handler: "_BatchHandler") -> None:
        problem = job.ending.error or _fault_of(job)
        job.status = job.ending.status
        if problem is not None:
            job.status = "failed"
            job.errors = [{"code": problem[0], "message": problem[1], "line": None, "param": None}]
            return
        replies, failures = [], []
        for number, request in enumerate(job.requests):
            if job.ending.answered is not None and number >= job.ending.answered:
                expired = {
                    "code": "batch_expired",
                    "message": "This request could not be executed in time.",
                }
                failures.append(_line(request, None, expired))
                continue
            fault = self.answer(Call(job.endpoint, {}, request["body"]))
            self.done()
            if fault.drops:
                failures.append(_line(request, None, {"code": "server_error", "message": "lost"}))
                continue
            payload = handler._payload(fault, request["body"]).decode()
            response = {
                "status_code": fault.status,
                "request_id": "req",
                "body": _parsed(payload),
            }
            (replies if fault.status == 200 else failures).append(_line(request, response, None))
        job.done, job.failed = len(replies), len(failures)
        for name, lines, damage in (
            ("output_file_id", replies, job.ending.damage),
            ("error_file_id", failures, bytes),
        ):
            if lines:
                # not through keep(), whose lock is held
                job.files[name] = self._kept(damage(b"".join(lines)))


def _fault_of(job: Job) -> tuple[str, str] | None:
    names = [request["custom_id"] for request in job.requests]
    if len(set(names)) < len(names):
        return "duplicate_custom_id", "The custom_id of a request is not unique."
    if any(
        request["url"] != job.endpoint or request["method"] != "POST" for request in job.requests
    ):
        return (
            "mismatched_endpoint",
            "A request's url is not the endpoint of the batch.",
        )
    return None


def _line(request: Body, response: Body | None, error: Body | None) -> bytes:
    line = {
        "id": "r",
        "custom_id": request["custom_id"],
        "response": response,
        "error": error,
    }
    return json.dumps(line).encode() + b"\n"


def _parsed(payload: str) -> Any:
    try:
        return json.loads(payload)
    except ValueError:
        return payload


class _BatchHandler(_Handler, BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        path = self._resource()
        if path.endswith("/chat/completions"):
            super().do_POST()
            return
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server = self.server.judge
        fault = server.refusals("POST", path)
        if fault is None and path == "/files":
            fault = self._upload(content)
        elif fault is None and path == "/batches":
            job = server.create(json.loads(content))
            fault = Fault(body=_described(job))
            if server.lost_replies:
                server.lost_replies -= 1
                fault = Fault(drops="before", body="{}")
        elif fault is None and path.endswith("/cancel"):
            job = self._job(path.split("/")[2])
            if job.status == "completed":
                fault = status(409, "Cannot cancel a batch with status 'completed'.")
            else:
                job.status = "cancelled"
                fault = Fault(body=_described(job))
        self._answer(fault)

    def do_GET(self) -> None:
        path = self._resource()
        server = self.server.judge
        fault = server.refusals("GET", path)
        parts = path.strip("/").split("/")
        if fault is None and parts[0] == "files" and parts[-1] == "content":
            self._send_raw(server.files[parts[1]])
            return
        if fault is None and parts[0] == "files":
            fault = Fault(body={"id": parts[1], "object": "file", "status": "processed"})
        elif fault is None and parts == ["batches"]:
            fault = Fault(body=self._list())
        elif fault is None and parts[0] == "batches" and (job := self._job(parts[1])):
            server.look(job, self)
            fault = Fault(body=_described(job))
        self._answer(fault)

    def do_DELETE(self) -> None:
        path = self._resource()
        server = self.server.judge
        fault = server.refusals("DELETE", path)
        kind, _, file_id = path.strip("/").partition("/")
        if fault is None and kind == "files" and server.files.pop(file_id, None) is not None:
            fault = Fault(body={"id": file_id, "object": "file", "deleted": True})
        self._answer(fault)

    def _resource(self) -> str:
        path = urlsplit(self.path).path
        for prefix in ("/v1", "/openai"):
            path = path.removeprefix(prefix)
        return path

    def _job(self, batch_id: str) -> Job | None:
        return next((job for job in self.server.judge.jobs if job.id == batch_id), None)

    def _list(self) -> Body:
        query = parse_qs(urlsplit(self.path).query)
        newest = list(reversed(self.server.judge.jobs))
        after = query.get("after", [None])[0]
        start = next((index + 1 for index, job in enumerate(newest) if job.id == after), 0)
        # Two a page, however many are asked for: whoever looks for a job has to turn pages.
        page = newest[start : start + 2]
        return {
            "object": "list",
            "data": [_described(job) for job in page],
            "has_more": start + 2 < len(newest),
        }

    def _upload(self, content: bytes) -> Fault:
        header = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        form = email.message_from_bytes(header + content)
        parts = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in form.get_payload()
        }
        if parts["purpose"] != b"batch":
            return status(400, "purpose must be batch")
        file_id = self.server.judge.keep(parts["file"])
        return Fault(
            body={
                "id": file_id,
                "object": "file",
                "purpose": "batch",
                "status": "processed",
            }
        )

    def _answer(self, fault: Fault | None) -> None:
        fault = fault or status(404, f"no such thing: {self.path}")
        self._send(fault, self._payload(fault, {}))

    def _send_raw(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _described(job: Job) -> Body:
    return {
        "id": job.id,
        "object": "batch",
        "endpoint": job.endpoint,
        "completion_window": "24h",
        "input_file_id": job.input_file_id,
        "created_at": 4_000_000_000,
        "metadata": job.metadata,
        "status": job.status,
        "request_counts": {
            "total": len(job.requests),
            "completed": job.done,
            "failed": job.failed,
        },
        "errors": {"object": "list", "data": job.errors} if job.errors else None,
        "output_file_id": job.files.get("output_file_id"),
        "error_file_id": job.files.get("error_file_id"),
    }
