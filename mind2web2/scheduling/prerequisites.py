"""Calls that are pending, and the prerequisites of a verification while there are some."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mind2web2.errors import JudgeError
from mind2web2.rubric.node import VerificationNode, possible_blocks
from mind2web2.rubric.verdicts import Status, skip_reason


@dataclass(eq=False)
class PendingCall:
    """A deferred verification or extraction.

    Args:
        leaf: where the verdict will be written, if anywhere.
        status: the verdict; ``None`` before there is one, and after a failure.
        value: what the call returns in the end.
        failure: the error that it raised.
        reached: set once its own prerequisites are decided.
    """

    leaf: VerificationNode | None
    status: Status | None = None
    value: Any = None
    failure: Exception | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def blocks(self) -> bool:
        """Tell whether its verdict, as far as there is one, skips what comes after it."""
        return self.leaf is not None and self.status in ("failed", "skipped")

    def finish(self) -> None:
        """Let all that wait for the call go on."""
        self.reached.set()
        self.finished.set()

    async def result(self) -> Any:
        """Wait until the call returns, and return what it does. Raises its error."""
        await self.finished.wait()
        if self.failure is not None:
            raise self.failure
        return self.value

    async def outcome(self) -> Status:
        """Wait for the verdict and return it. Raises JudgeError: the verification failed."""
        await self.finished.wait()
        if self.status is None:
            name = None if self.leaf is None else self.leaf.id
            raise JudgeError(f"no verdict on '{name}', which was to come first")
        return self.status


@dataclass(frozen=True, slots=True)
class NotedPrerequisites:
    """The leaves that may block a verification, as they were when the script asked.

    Args:
        decided: the reason to skip it, unless one of ``pending`` blocks as well.
        pending: in the order in which they are checked.
    """

    decided: str | None
    pending: tuple[PendingCall, ...] = ()

    @property
    def is_blocked(self) -> bool:
        """Tell whether a verdict that there is by now skips the verification."""
        return self.decided is not None or any(each.blocks for each in self.pending)

    @property
    def is_open(self) -> bool:
        """Tell whether only pending verdicts decide."""
        return self.decided is None and bool(self.pending)

    async def are_reached(self) -> None:
        """Wait until no prerequisite waits for one of its own: one level of gates is undecided."""
        for each in self.pending:
            await each.reached.wait()

    async def skip_reason(self) -> str | None:
        """Return why the verification is skipped, ``None`` if it is not."""
        for each in self.pending:
            status = await each.outcome()
            if each.blocks and each.leaf is not None:
                return skip_reason(each.leaf.id, status)
        return self.decided


def noted_prerequisites(
    node: VerificationNode | None,
    extra: Sequence[VerificationNode],
    verdicts: Mapping[int, PendingCall],
) -> NotedPrerequisites:
    """Return the leaves that block a verification, or may block it.

    Args:
        verdicts: the pending ones, by the ``id`` of the leaf.
    """
    pending: list[PendingCall] = []
    for leaf in possible_blocks(node, extra):
        verdict = verdicts.get(id(leaf))
        if verdict is None:
            return NotedPrerequisites(
                skip_reason(leaf.id, leaf.verdict.status), tuple(pending)
            )
        pending.append(verdict)
    return NotedPrerequisites(None, tuple(pending))
