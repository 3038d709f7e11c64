"""The five hooks of plugins, and what each takes and returns.

A plugin is a package with entry points. The group names the hook:

- ``mind2web2.commands``: a module with ``add_command(commands)``, by the command's name.
- ``mind2web2.judges``: a ``Provider`` (``mind2web2.llm_client.providers``), by the name in
  ``--llm_provider``.
- ``mind2web2.listeners``: a ``ListenerOpener``, which follows runs.
- ``mind2web2.page_importers``: an ``Importer`` (``mind2web2.pages.importing``), by the ending of
  the files that it reads.
- ``mind2web2.exports``: an ``Export``, by its option of ``mind2web2 export``.

``docs/plugins.md`` explains each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mind2web2.judge.protocol import AskedQuestion
    from mind2web2.results.answers import AnswerJob
    from mind2web2.runs.answer import AnswerOutcome


class Listener:
    """Follows a run; a plugin overrides what it wants to hear of."""

    def question_asked(self, asked: AskedQuestion) -> None:
        """Note a question that was sent to the judge, with its judgment or failure."""

    def answer_begins(self, job: AnswerJob) -> None:
        """Note that an answer is evaluated, or that its earlier result is looked for."""

    def answer_ends(self, job: AnswerJob, outcome: AnswerOutcome | None) -> None:
        """Note what an answer got; ``None`` if another process evaluates it, or the run fails."""


# Opens a listener for a run, ``None`` if it does not want to follow it. It may print a line.
ListenerOpener = Callable[[Callable[[str], None]], AbstractAsyncContextManager[Listener | None]]


class Export(Protocol):
    """A format of ``mind2web2 export``, with the option ``--NAME FILE``."""

    help: str

    def write(self, output: Path, agents: Sequence[str], results_root: Path) -> str:
        """Write the newest results of agents and return the line that says so."""
