"""Runs scripts on answers again: nothing of a project is written."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from pathlib import Path

from mind2web2.judge.caching import CachingJudge
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import AnswerFile, AnswerSetting, read_answer
from mind2web2.results.provenance import Provenance
from mind2web2.results.result_file import ResultFile
from mind2web2.runs.answer import ScriptTime, run_script_on_answer
from mind2web2.runs.session import OwnParts, run_parts
from mind2web2.runs.settings import RunSettings
from mind2web2.scripts.limits import DualSemaphore

_ANSWER_TIMEOUT_S = 3600.0
# The evaluation has logged the same about its answers.
_unread_log = logging.getLogger(__name__)
_unread_log.setLevel(logging.CRITICAL)


class ScriptRuns:
    """Runs scripts in memory, with pages in a folder of ours where scripts may store others.

    Args:
        folder: for these pages; temporary.
        requests: to judges, at once.
    """

    def __init__(self, folder: Path, requests: int = 1) -> None:
        self._folder = folder
        self._library = PageLibrary()
        self._limits = DualSemaphore(asyncio.Semaphore(requests), asyncio.Semaphore(30))

    def pages(self, pages: Path, name: str) -> CacheFileSys:
        """Return a task's pages under another name, linked once; reads and writes files."""
        folder = self._folder / name
        if not folder.exists():
            folder.mkdir(parents=True)
            for path in pages.iterdir() if pages.is_dir() else ():
                if path.is_file():
                    _link(path, folder / path.name)
        return CacheFileSys(folder)

    async def result(
        self,
        agent_name: str,
        task_id: str,
        answer: AnswerFile,
        script: Path,
        pages: CacheFileSys,
        judge: CachingJudge,
        made_from: Provenance | None,
    ) -> ResultFile:
        """Return the result of a script on an answer.

        Args:
            pages: as ``pages`` returns them.
            made_from: the clock and the network of the script are those of this result; ``None``
                for the real clock, and no private network.

        Raises:
            Mind2Web2Error: there is no result.
        """
        settings = RunSettings(
            no_capture=True,
            answer_timeout=_ANSWER_TIMEOUT_S,
            allow_private_network=made_from is not None and made_from.with_private_network,
        )
        parts = run_parts(settings, judge, OwnParts(limits=self._limits), library=self._library)
        setting = AnswerSetting(agent_name, task_id, answer, script, script.parent.name, pages)
        text = await asyncio.to_thread(read_answer, answer.path)
        return await run_script_on_answer(
            setting, parts, text, _unread_log, ScriptTime.of_result(made_from)
        )


def _link(path: Path, other: Path) -> None:
    """Give a file a second name, or copy it to another disk; a symbolic link would not be read."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copy2(path, other)
