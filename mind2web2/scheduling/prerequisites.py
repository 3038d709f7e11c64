"""The prerequisites of a verification while verdicts are pending."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mind2web2.errors import JudgeError
from mind2web2.rubric.node import VerificationNode, possible_blocks
from mind2web2.rubric.verdicts import Status, skip_reason


@dataclass(eq=False)
class PendingVerdict:
    """A deferred verification.

    Args:
        leaf: where the verdict will be written, if anywhere.
        status: the verdict; ``None`` before there is one, and after a failure.
    """

    leaf: VerificationNode | None
    status: Status | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)

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
    pending: tuple[PendingVerdict, ...] = ()

    @property
    def is_open(self) -> bool:
        """Tell whether only pending verdicts decide."""
        return self.decided is None and bool(self.pending)

    async def skip_reason(self) -> str | None:
        """Return why the verification is skipped, ``None`` if it is not."""
        for each in self.pending:
            status = await each.outcome()
            if status in ("failed", "skipped") and each.leaf is not None:
                return skip_reason(each.leaf.id, status)
        return self.decided


def noted_prerequisites(
    node: VerificationNode | None,
    extra: Sequence[VerificationNode],
    verdicts: Mapping[int, PendingVerdict],
) -> NotedPrerequisites:
    """Return the leaves that block a verification, or may block it.

    Args:
        verdicts: the pending ones, by the ``id`` of the leaf.
    """
    pending: list[PendingVerdict] = []
    for leaf in possible_blocks(node, extra):
        verdict = verdicts.get(id(leaf))
        if verdict is None:
            return NotedPrerequisites(
                skip_reason(leaf.id, leaf.verdict.status), tuple(pending)
            )
        pending.append(verdict)
    return NotedPrerequisites(None, tuple(pending))
