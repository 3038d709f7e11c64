"""A call: a node judges some answers of one task, in a folder of its own."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mind2web2.plugin import (
    JudgedPart,
    Mind2Web2Error,
    PartOfRun,
    RunSettings,
    UsageError,
)
from mind2web2_ray.connection import version_problem

_NEWS_EVERY_S = 1.0
# The contents of files by their paths from a root, each with its time of modification.
Files = dict[str, tuple[bytes, float]]


@dataclass(frozen=True)
class Order:
    """The order that all calls of a run share.

    Args:
        settings: of the run, without its folders.
        variables: of the command's environment, such as API keys. They travel in a call, since Ray
            logs the environment of a task.
    """

    settings: RunSettings
    agent_name: str
    variables: Mapping[str, str] = field(repr=False)
    version: str


@dataclass(frozen=True)
class Judged:
    """The outcome of a call.

    Args:
        files: new and changed ones of the results folder.
        judgments: those that the desk has not heard of, each as JSON.
        problem: why this node cannot judge answers, in one line.
        unusable_judge: why no answer can be judged, in one line.
    """

    files: Files = field(default_factory=dict)
    part: JudgedPart = field(default_factory=JudgedPart)
    judgments: Sequence[str] = ()
    problem: str | None = None
    unusable_judge: str | None = None


def files_below(root: Path, *folders: Path) -> Files:
    """Return the files in folders, which lie below a root."""
    files = {}
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes(), path.stat().st_mtime
                files[path.relative_to(root).as_posix()] = content
    return files


def write_files(root: Path, files: Files) -> None:
    """Write files below a root."""
    for name, (content, modified) in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (modified, modified))


def judge_answers(
    order: Order,
    task_id: str,
    shared: Files,
    own: Files,
    judgments: Sequence[str],
    desk: Any,
    name: str,
) -> Judged:
    """Judge answers of a task and return the files of their results.

    Args:
        shared: script and pages of the task.
        own: answers, and their newest results.
        judgments: stored ones of the task, each as JSON.
        desk: the actor ``Desk``.
        name: of this call.
    """
    if problem := version_problem(order.version):
        return Judged(problem=problem)
    os.environ.update(order.variables)
    with tempfile.TemporaryDirectory(prefix="mind2web2-ray-") as folder:
        root = Path(folder)
        write_files(root, {**shared, **own})
        call = _Call(order, task_id, root, desk, name)
        before = files_below(root, root / "eval_results")
        judged = asyncio.run(call.judged(judgments))
        after = files_below(root, root / "eval_results")
        wanted = f"eval_results/{order.agent_name}/{task_id}/"
        files = {
            path: content
            for path, content in after.items()
            if path.startswith(wanted) and path.count("/") > 3 and before.get(path) != content
        }
        return replace(judged, files=files)


class _Share:
    """A limit of requests in flight that changes while it is used."""

    def __init__(self, places: int) -> None:
        self.places = places
        self._taken = 0
        self._left = asyncio.Condition()

    def locked(self) -> bool:
        """Tell whether another request would have to wait."""
        return self._taken >= self.places

    async def __aenter__(self) -> None:
        async with self._left:
            await self._left.wait_for(lambda: not self.locked())
            self._taken += 1

    async def __aexit__(self, *_: object) -> None:
        async with self._left:
            self._taken -= 1
            self._left.notify()

    async def resize(self, places: int) -> None:
        """Allow another number of requests."""
        async with self._left:
            self.places = places
            self._left.notify_all()


class _Call:
    """The work of one call."""

    def __init__(self, order: Order, task_id: str, root: Path, desk: Any, name: str) -> None:
        self._order = order
        self._task_id = task_id
        self._root = root
        self._desk = desk
        self._name = name
        self._untold: list[str] = []
        self._leased_usd = 0.0

    async def judged(self, judgments: Sequence[str]) -> Judged:
        """Judge the answers; their files are below the root."""
        order, root = self._order, self._root
        settings = replace(
            order.settings,
            answer_folder=root / "answers",
            eval_scripts_root=root / "eval_scripts",
            eval_results_root=root / "eval_results",
            cache_root=root / "cache",
        )
        share = _Share(1)
        part = PartOfRun(
            settings, order.agent_name, self._task_id, share, self._lease, self._untold.append
        )
        try:
            async with self._telling(share):
                judged = await part.judged(judgments)
        except UsageError as error:
            return Judged(unusable_judge=str(error), judgments=tuple(self._untold))
        except Mind2Web2Error as error:
            return Judged(problem=str(error), judgments=tuple(self._untold))
        if settings.max_cost is not None:
            await self._desk.give_back.remote(self._leased_usd - judged.spent_usd)
        return Judged(part=judged, judgments=tuple(self._untold))

    async def _lease(self, missing_usd: float) -> float:
        leased: float = await self._desk.lease.remote(missing_usd)
        self._leased_usd += leased
        return leased

    @asynccontextmanager
    async def _telling(self, share: _Share) -> AsyncIterator[None]:
        """Tell the desk once a second that this call lives, and what it has asked."""

        async def tell() -> None:
            while True:
                untold = list(self._untold)
                await share.resize(await self._desk.hear.remote(self._name, untold))
                del self._untold[: len(untold)]
                await asyncio.sleep(_NEWS_EVERY_S)

        telling = asyncio.create_task(tell())
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
