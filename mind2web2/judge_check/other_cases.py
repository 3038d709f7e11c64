"""The hook ``judge_checks``: other cases for ``check-judge``, with options of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mind2web2.judge_check.check import JudgeCheck
from mind2web2.judge_check.labelled_set import LabelledSet


@dataclass(frozen=True)
class CheckNews:
    """Further news of a judge after its check.

    Args:
        lines: are printed.
        summary: stands in the JSON.
        has_failed: the command exits with status 5.
    """

    lines: Sequence[str]
    summary: Any = None
    has_failed: bool = False


@dataclass(frozen=True)
class OtherCases:
    """Cases in place of the labelled set.

    Args:
        is_recorded: results of the judge name this check.
        ceiling: how often annotators agree with each other.
        asks_again: whatever is stored.
        news: takes the folder of results, the check of one judge and the number of votes.
    """

    labelled: LabelledSet
    is_recorded: bool = True
    ceiling: float | None = None
    asks_again: bool = False
    news: Callable[[Path, JudgeCheck, int], CheckNews] | None = field(default=None)


class JudgeCheckPart(Protocol):
    """A part of the hook ``judge_checks``."""

    def add_options(self, parser: argparse._ActionsContainer) -> None:
        """Add the options by which a user chooses these cases."""

    def cases(self, options: argparse.Namespace) -> OtherCases | None:
        """Return the cases that the options choose, ``None`` if they choose none.

        Raises:
            UsageError: the options contradict each other, or name nothing.
        """
