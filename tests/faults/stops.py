"""Ctrl-C in the middle of a run: once, it stops within two seconds and keeps everything.

Twice, at once.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from faults.figures import Figures, together
from faults.preloaded import PATIENCE_S, Preloaded, Started
from projects import Project, claim_in
from servers.judge_server import JudgeServer, prompt_text
from servers.local_http import Answer, LocalHttp

from mind2web2.judge.store import STORE_NAME, JudgmentStore

STOPS_WITHIN_S = 2.0
AT_ONCE_S = 0.5
_POLL_S = 0.01
_BETWEEN_S = 0.1
_INTERRUPTED = 130
_STORED = "The lake is deep."
_HELD = "The lake is wide."
# Code behind the verdict does not run beside it.
_BLOCKED = """
if await evaluator.verify("The lake is deep.", evaluator.add_leaf("deep", "deep")):
    open("reached", "w").close()
"""


@dataclass(frozen=True)
class Scene:
    """The activity of a run when it is stopped.

    Args:
        body: of the script, which makes a file ``reached`` where it gets stuck; ``None`` for the
            judge or a page to be stuck.
        options: of the command.
    """

    name: str
    body: str | None = None
    options: Sequence[str] = ()


SCENES = (
    Scene("a judge that hangs"),
    Scene("a page that is being captured"),
    Scene("a script that loops", _BLOCKED + "while True: pass"),
    Scene("a script that sleeps", _BLOCKED + "time.sleep(3600)"),
    Scene(
        "a script that swallows its cancellation",
        _BLOCKED
        + "while True:\n    try:\n        await asyncio.sleep(3600)\n    except BaseException:\n  "
        "      pass",
    ),
    Scene(
        "a thread of a script's",
        _BLOCKED + "await asyncio.to_thread(time.sleep, 3600)",
    ),
)


def run(count: int, seed: int) -> Figures:  # noqa: ARG001 (nothing here is left to chance)
    """Stop so many runs, in one scene after the other, first by one Ctrl-C and then by two."""
    figures = []
    with Preloaded() as commands:
        for number in range(count):
            times = 1 + number // len(SCENES) % 2
            limit_s = STOPS_WITHIN_S if times == 1 else AT_ONCE_S
            figures.append(stopped(commands, SCENES[number % len(SCENES)], times, limit_s))
    return together("Ctrl-C", figures)


def stopped(commands: Preloaded, scene: Scene, times: int, limit_s: float) -> Figures:
    """Stop a run in a scene by so many Ctrl-C, and return what came of it."""
    where = f"{scene.name}, Ctrl-C {times} times"
    with _scene(commands, scene) as (project, process, is_reached):
        _wait_until(lambda: is_reached() and _stored(project) == 2, process)
        process.interrupt()
        # Two that come at the same moment are one to the system.
        if times > 1 and not process.ends_within(_BETWEEN_S):
            process.interrupt()
        started_s = time.monotonic()
        is_in_time = process.ends_within(limit_s)
        problems = [] if is_in_time else [f"{where}: still running after {limit_s:g} s"]
        if not process.ends_within(PATIENCE_S):
            process.kill()
        seconds = time.monotonic() - started_s
        status = process.status()
        if status != _INTERRUPTED:
            problems.append(f"{where}: exit status {status}: {process.printed()[-400:]}")
        elif times == 1 and "The same command continues from here" not in process.printed():
            problems.append(f"{where}: it does not say how to go on: {process.printed()[-400:]}")
        return Figures(
            "",
            disturbances=1,
            lost_judgments=2 - _stored(project),
            hindrances=tuple(problems),
            recovery_s=(seconds,),
        )


@contextmanager
def _scene(
    commands: Preloaded, scene: Scene
) -> Iterator[tuple[Project, Started, Callable[[], bool]]]:
    may_answer, is_held = threading.Event(), threading.Event()

    def reply(body: dict[str, object]) -> dict[str, object]:
        if claim_in(prompt_text(body)) == _HELD:
            is_held.set()
            may_answer.wait(PATIENCE_S)
        return {"reasoning": "read", "result": True}

    def serve(_: object) -> Answer:
        is_held.set()
        may_answer.wait(PATIENCE_S)
        return Answer(b"<p>The lake is wide.")

    with (
        JudgeServer(reply) as judge,
        LocalHttp(serve) as site,
        tempfile.TemporaryDirectory(prefix="faults-") as folder,
    ):
        project = Project(Path(folder))
        project.add_answer()
        if scene.body is not None:
            project.add_script_body(scene.body)
        else:
            source = f"{site.url}/lake" if "page" in scene.name else None
            project.add_script({"deep": (_STORED, None), "wide": (_HELD, source)})
        command = [
            "evaluate",
            "bot",
            "--judge_base_url",
            judge.base_url,
            "--allow_private_network",
        ]
        process = commands.start(
            [*command, *scene.options],
            project.root,
            project.root / "output.txt",
            OPENAI_API_KEY="dummy",
        )
        try:
            is_reached = is_held.is_set if scene.body is None else (project.root / "reached").exists
            yield project, process, is_reached
        finally:
            may_answer.set()


def _wait_until(condition: Callable[[], bool], process: Started) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if process.ends_within(_POLL_S) or time.monotonic() > deadline_s:
            raise AssertionError(f"the scene does not come about: {process.printed()}")


def _stored(project: Project) -> int:
    path = project.results / STORE_NAME
    if not path.exists():
        return 0
    with JudgmentStore(path) as store:
        return sum(
            judgment.claim == _STORED and judgment.purpose == "verify" for judgment in store.all()
        )


PARTS = (run,)
