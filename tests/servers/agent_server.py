"""A model's server on loopback: chat completions, and the Responses API with background polling."""

import json
import threading

from servers.local_http import Answer, LocalHttp


class AgentServer(LocalHttp):
    """Answers each question with ``text``.

    A response is queued and in progress before it is complete.

    Args:
        failures: statuses of the first requests that create something.
        final: fields of a finished response that differ.
        holds: an event that responses wait for before they are complete.
    """

    def __init__(
        self,
        text="The lake is deep.",
        annotations=(),
        failures=(),
        final=None,
        holds=None,
    ):
        self.text, self.annotations, self.failures = (
            text,
            list(annotations),
            list(failures),
        )
        self.final, self.holds = final or {}, holds
        self.created, self.polls, self.cancelled, self.questions = [], {}, [], []
        self.lock = threading.Lock()
        self.polled = threading.Event()
        super().__init__(self.reply)

    @property
    def url(self):
        """Return the address to give as the base URL."""
        return f"{super().url}/v1"

    def reply(self, request):
        """Answer a request to create, cancel or look at something."""
        if request.method == "GET":
            status, content = 200, self.poll(request.path.rpartition("/")[2])
        else:
            status, content = self.post(request.path, json.loads(request.body or "{}"))
        headers = {"Content-Type": "application/json", "Retry-After": "0"}
        return Answer(json.dumps(content).encode(), status, headers)

    def post(self, path, body):
        """Create a completion or a response, or cancel one."""
        if path.endswith("/cancel"):
            self.cancelled.append(path.split("/")[-2])
            return 200, self.response(path.split("/")[-2], "cancelled")
        with self.lock:
            if self.failures:
                status = self.failures.pop(0)
                return status, {"error": {"message": f"failure {status}"}}
            if path.endswith("/chat/completions"):
                self.questions.append(body["messages"])
                return 200, self.completion(body["model"])
            assert body["background"]
            assert body["tools"] == [{"type": "web_search"}]
            self.questions.append(body["input"])
            self.created.append(f"resp_{len(self.created) + 1}")
            return 200, self.response(self.created[-1], "queued")

    def poll(self, name):
        """Return a response as it is now."""
        with self.lock:
            self.polls[name] = self.polls.get(name, 0) + 1
            self.polled.set()
            is_complete = self.polls[name] > 1 and (self.holds is None or self.holds.is_set())
        return self.response(name, "completed" if is_complete else "in_progress")

    def response(self, name, status):
        """Return a response in the API's form."""
        content = {
            "id": name,
            "object": "response",
            "created_at": 1.0,
            "model": "gpt-5-mini",
            "status": status,
        }
        content |= {
            "output": [],
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        }
        if status != "completed":
            return content
        part = {
            "type": "output_text",
            "text": self.text,
            "annotations": self.annotations,
        }
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
        search["action"] = {"type": "search", "query": "lake"}
        message = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
        }
        content["output"] = [search, message | {"content": [part]}]
        content["usage"] = {
            "input_tokens": 1000,
            "output_tokens": 1000,
            "total_tokens": 2000,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return content | self.final

    def completion(self, model):
        """Return a chat completion."""
        message = {"role": "assistant", "content": self.text}
        return {
            "id": "chat_1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {
                "prompt_tokens": 1000,
                "completion_tokens": 1000,
                "total_tokens": 2000,
            },
        }
