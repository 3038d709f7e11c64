"""Pending verdicts, and how a verification depends on them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mind2web2.errors import JudgeError
from mind2web2.rubric.aggregation import Status
from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.preconditions import possible_blocks

_BLOCKING = ("failed", "skipped")


@dataclass(eq=False)
class PendingVerdict:
    """A deferred verification.

    Args:
        leaf: where the verdict will stand, if anywhere.
        status: the verdict; ``None`` while there is none, and after a failure.
    """

    leaf: VerificationNode | None
    status: Status | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    async def outcome(self) -> Status:
        """Return the verdict once it is there.

        Raises:
            JudgeError: there will be none.
        """
        await self.finished.wait()
        if self.status is None:
            name = None if self.leaf is None else self.leaf.id
            raise JudgeError(f"no verdict on '{name}', which was to come first")
        return self.status


@dataclass(frozen=True, slots=True)
class NotedPrerequisites:
    """What may block a verification, as it stood when the script asked, in the order of ``blocking_leaf``.

    Args:
        decided: why it is blocked in any case, unless one of ``pending`` blocks as well.
        pending: looked at first.
    """

    decided: str | None
    pending: tuple[PendingVerdict, ...] = ()

    async def skip_reason(self) -> str | None:
        """Return why the verification is skipped, ``None`` if it is not."""
        for each in self.pending:
            status = await each.outcome()
            if status in _BLOCKING and each.leaf is not None:
                return _reason(each.leaf, status)
        return self.decided


def noted_prerequisites(
    node: VerificationNode | None, extra: Sequence[VerificationNode], verdicts: Mapping[int, PendingVerdict]
) -> NotedPrerequisites:
    """Return what blocks a verification or may come to, as it stands now.

    Args:
        verdicts: the pending ones, by the ``id`` of the leaf.
    """
    pending: list[PendingVerdict] = []
    for leaf in possible_blocks(node, extra):
        verdict = verdicts.get(id(leaf))
        if verdict is None:
            return NotedPrerequisites(_reason(leaf, leaf.verdict.status), tuple(pending))
        pending.append(verdict)
    return NotedPrerequisites(None, tuple(pending))


def _reason(leaf: VerificationNode, status: str) -> str:
    return f"not judged, because '{leaf.id}' {'failed' if status == 'failed' else 'was skipped'}"
