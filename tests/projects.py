"""Small projects on disk, and judges to evaluate them with in this process.

project = Project(tmp_path)
project.add_answer("answer_1")
project.add_script({"leaf": ("The lake is deep.", None)})
[outcome] = await evaluate(project, ClaimJudge())
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING
from unittest.mock import patch

from key_variables import KEY_VARIABLES

from mind2web2.cli import evaluate_main
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.client_judge import ClientProvider, as_provider
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.llm_client.chat import ChatProvider
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import SharedCaptures
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.answer import AnswerOutcome, RunParts
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.scripts.isolation.messages import Ahead
from mind2web2.scripts.isolation.run import Isolation
from mind2web2.scripts.limits import DualSemaphore
from mind2web2.utils.moments import AsOf
from mind2web2.utils.path_config import PathConfig

if TYPE_CHECKING:
    import pytest

REPOSITORY = Path(__file__).parent.parent
AGENT = "bot"
TASK = "lake"
ANSWER = "The lake is deep and cold."
SETTINGS = JudgeSpec("judge-1")

# As many tries as usual, without the usual waits.
QUICK_RETRY = RetryPolicy(
    tries=3,
    total_s=30,
    outage_wait_s=2,
    first_wait_s=0.001,
    longest_wait_s=0.01,
    request_timeout_s=20,
)

_HEADER = """\
import asyncio, math, sys, time
from mind2web2 import Evaluator


def started(client, answer, agent_name, answer_name, cache, semaphore, logger, model):
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="lake", agent_name=agent_name, answer_name=answer_name, client=client, answer=answer,
        global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model,
    )
    return evaluator


async def evaluate_answer(
    client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"
):
"""
_START = (
    "evaluator = started(client, answer, agent_name, answer_name, cache, semaphore, logger, "
    "model)\n"
)
_VERIFY = """\
leaves = [(evaluator.add_leaf(name, name), claim, source) for name, (claim, source) in CLAIMS.items()]
for leaf, claim, source in leaves:
    await evaluator.verify(claim=claim, node=leaf, sources=source)
return evaluator.get_summary()
"""

Claims = Mapping[str, tuple[str, str | None]]


@dataclass(frozen=True)
class Project:
    """A folder with ``answers/``, ``eval_scripts/`` and ``cache/`` of the agent ``bot``."""

    root: Path

    @property
    def paths(self) -> PathConfig:
        """Return the project's folders as a run knows them."""
        return PathConfig(self.root)

    @property
    def results(self) -> Path:
        """Return the folder of the agent's results."""
        return self.root / "eval_results" / AGENT

    def add_answer(
        self, stem: str = "answer_1", text: str | bytes = ANSWER, task: str = TASK
    ) -> Path:
        """Write an answer."""
        path = self.root / "answers" / AGENT / task / f"{stem}.md"
        return _written(path, text)

    def add_settings(self, lines: str) -> Path:
        """Write ``mind2web2.toml``."""
        return _written(self.root / "mind2web2.toml", f"{lines}\n")

    def add_script(self, claims: Claims, task: str = TASK, version: str = "example") -> Path:
        """Write an eval script that verifies each claim on its source, one after the other."""
        body = f"CLAIMS = {dict(claims)!r}\n{_START}{_VERIFY}"
        return self.add_raw_script(_HEADER + indent(body, "    "), task, version)

    def add_script_body(self, body: str, task: str = TASK) -> Path:
        """Write an eval script whose function starts an evaluation and then does this."""
        return self.add_raw_script(_HEADER + indent(_START + dedent(body), "    "), task)

    def add_raw_script(self, text: str, task: str = TASK, version: str = "example") -> Path:
        """Write an eval script as it is given."""
        return _written(self.root / "eval_scripts" / version / f"{task}.py", text)

    def cache(self, task: str = TASK) -> CacheFileSys:
        """Return the task's page cache."""
        return CacheFileSys(self.root / "cache" / AGENT / task)

    def folder(self, stem: str = "answer_1", task: str = TASK) -> Path:
        """Return the folder of one answer's evaluations."""
        return self.results / task / stem

    def result_paths(self, stem: str = "answer_1", task: str = TASK) -> list[Path]:
        """Return the result files of an answer, oldest first."""
        return sorted((self.folder(stem, task) / "results").glob("*"))

    def task_summary(self, task: str = TASK) -> dict[str, dict]:
        """Return the entries of the task's two summary files by answer name."""
        paths = [self.results / task / name for name in ("summary.json", "unscored.json")]
        entries = [entry for path in paths if path.exists() for entry in read_json(path)]
        return {entry["answer_name"]: entry for entry in entries}


def entered(folder: Path, monkeypatch: pytest.MonkeyPatch, key: str = "dummy") -> Project:
    """Work in a folder, on a wide console and with a key, and return its project."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(folder)
    return Project(folder)


class ClaimJudge:
    """A client as tests may pass one: it has ``async_response`` and nothing else.

    Args:
        verdict: whether a claim is supported; may raise, and may be a coroutine function.
    """

    def __init__(self, verdict: Callable = lambda _claim: True) -> None:
        self.claims: list[str] = []
        self.models: list[str] = []
        self._verdict = verdict

    async def async_response(self, *, model, messages, response_format=None):
        """Return a verdict on the claim that the messages end with."""
        claim = claim_in(messages_text(messages))
        self.claims.append(claim)
        self.models.append(model)
        result = self._verdict(claim)
        if asyncio.iscoroutine(result):
            result = await result
        if response_format is None:
            return "a text"
        return response_format.model_validate({"reasoning": f"read: {claim}", "result": result})


async def evaluate(
    project: Project,
    client: object,
    *,
    settings: JudgeSpec = SETTINGS,
    reuse: bool = True,
    overwrite: bool = False,
    answer_timeout_s: float | None = None,
    concurrency: Concurrency | None = None,
    llm_limit: int = 30,
    progress: RunProgress | None = None,
    dump_cache: bool = False,
    log_to_console: bool = False,
    captures: SharedCaptures | None = None,
    isolation: Isolation = Isolation(),  # noqa: B008 (frozen)
    ahead: Ahead | None = "values",
    as_of: AsOf | None = None,
) -> list[AnswerOutcome]:
    """Evaluate all of a project's answers by a run in this process; ``client=None`` replays."""
    folders = RunFolders(AGENT, project.paths.cache_root, project.paths.eval_results_root)
    with JudgmentStore(project.results / STORE_NAME) as store:
        provider = None if client is None else _as_provider(client)
        run = RunParts(
            judge=CachingJudge(settings, provider, store, overwrite=overwrite),
            library=PageLibrary(),
            limits=DualSemaphore(asyncio.Semaphore(10), asyncio.Semaphore(llm_limit)),
            reuse=reuse,
            answer_timeout_s=answer_timeout_s,
            log_to_console=log_to_console,
            captures=captures,
            isolation=isolation,
            ahead=ahead,
            as_of=as_of,
        )
        work = select_work(project.paths, AGENT)
        return await evaluate_work(
            work,
            folders,
            run,
            concurrency or Concurrency(),
            progress or RunProgress(),
            dump_cache=dump_cache,
        )


class _OneJudge(ClientProvider):
    """Makes all clients the same judge, as a server is the same for each connection."""

    endpoint = "the judge of the tests"


def _as_provider(client: object) -> ChatProvider:
    return as_provider(client) if hasattr(client, "chat") else _OneJudge(client)


def outcomes_by_name(outcomes: list[AnswerOutcome]) -> dict[str, AnswerOutcome]:
    """Return outcomes by the answer's name."""
    return {outcome.answer_name: outcome for outcome in outcomes}


def messages_text(messages) -> str:
    """Return all text of chat messages."""
    contents = [message["content"] for message in messages]
    parts = [[{"text": content}] if isinstance(content, str) else content for content in contents]
    return "\n".join(part.get("text", "") for content in parts for part in content)


def block_in(text: str, name: str) -> str | None:
    """Return what a prompt has between the delimiters of a block.

    Return ``None`` where the prompt has no such block.
    """
    found = re.search(rf"<<{name} (\w+)>>\n(.*?)\n<<end of {name} \1>>", text, re.DOTALL)
    return None if found is None else found[2]


def claim_in(text: str) -> str | None:
    """Return the claim that a prompt asks about."""
    return block_in(text, "claim")


def read_json(path: Path):
    """Return a JSON file's content."""
    return json.loads(path.read_text(encoding="utf-8"))


def clean_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without judges' keys, with these variables."""
    kept = {name: value for name, value in os.environ.items() if name not in KEY_VARIABLES}
    return {**kept, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200", **variables}


def start_command(*arguments: object, cwd: Path, **variables: str) -> subprocess.Popen:
    """Start ``run_eval.py`` as a process of its own.

    The process has a dummy key unless ``OPENAI_API_KEY`` is given.
    """
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "run_eval.py"), *map(str, arguments)],
        cwd=cwd,
        env=clean_environment(**{"OPENAI_API_KEY": "dummy", **variables}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def run_command(*arguments: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess:
    """Run ``mind2web2 evaluate`` in this process, as ``start_command`` does in one of its own."""
    environment = clean_environment(**{"OPENAI_API_KEY": "dummy", **variables})
    with chdir(cwd), patch.dict(os.environ, environment, clear=True):
        return call(evaluate_main, *arguments)


def run_process(*arguments: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess:
    """Run ``run_eval.py`` as a process of its own and wait for it."""
    with start_command(*arguments, cwd=cwd, **variables) as process:
        stdout, stderr = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def call(command: Callable[[list[str]], int], *arguments: object) -> subprocess.CompletedProcess:
    """Run a command's function in this process and return its status and what it printed."""
    words = list(map(str, arguments))
    stdout, stderr = io.StringIO(), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            status = command(words)
        except SystemExit as exit_request:
            status = exit_request.code
    return subprocess.CompletedProcess(words, status, stdout.getvalue(), stderr.getvalue())


def overridden(defaults: Sequence[object], more: Sequence[object]) -> list[object]:
    """Return the words of a command, where ``more`` replaces defaults.

    The words are pairs of an option and its value, without the defaults that ``more`` gives.
    """
    given = {str(word).partition("=")[0] for word in more}
    pairs = zip(defaults[::2], defaults[1::2], strict=True)
    return [word for pair in pairs if pair[0] not in given for word in pair] + list(more)


def _written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
