"""Probes made from passed claims, as many as are wanted; no more pages are read than these need."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

from mind2web2.plugin import UsageError, counted
from mind2web2_trust.probe.cases import Case, CaseReader, PassedClaims
from mind2web2_trust.probe.changes import change_page
from mind2web2_trust.probe.edits import CHANGES, CONTROLS, Change, ChangeKind, Discarded

# One control is asked for this many probes.
PROBES_A_CONTROL = 5


@dataclass(frozen=True)
class Probe:
    """A case with a changed page."""

    case: Case
    change: Change

    @property
    def name(self) -> str:
        """Return a name for logs and stored judgments."""
        return f"{self.case.claim.place}/{self.change.kind}"


class Draft:
    """The probes that were made so far, in the order in which they are asked.

    Each claim has one probe, then each has a second one, and so on. A probe is of the kind that is
    the rarest so far. A small sample therefore reads few pages, and a larger one begins with the
    same probes.

    Args:
        seed: another seed makes other probes.

    Attributes:
        discarded: changes that were left out, since the changed page might still support the claim.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._counts: dict[str, int] = dict.fromkeys(CHANGES, 0)
        self._cases: list[tuple[Case, set[ChangeKind]]] = []
        self.probes: list[Probe] = []
        self.controls: list[Probe] = []
        self.discarded: list[Discarded] = []

    def add(self, case: Case) -> None:
        """Make a claim's first probe, and a control."""
        kinds = set(CHANGES)
        if self._make_probe(case, kinds):
            kind = CONTROLS[len(self._cases) % len(CONTROLS)]
            self._cases.append((case, kinds))
            control = change_page(case.page, kind, self._random)
            if isinstance(control, Change):
                self.controls.append(Probe(case, control))

    def add_further(self) -> bool:
        """Make another probe of each claim, and tell whether there was one."""
        made = [self._make_probe(case, kinds) for case, kinds in self._cases]
        return any(made)

    def _make_probe(self, case: Case, kinds: set[ChangeKind]) -> bool:
        """Make a probe of one of the kinds, the rarest first; take away those that were tried."""
        for kind in sorted(kinds, key=lambda kind: (self._counts[kind], CHANGES.index(kind))):
            kinds.remove(kind)
            change = change_page(case.page, kind, self._random)
            if isinstance(change, Discarded):
                self.discarded.append(change)
            elif change is not None:
                self._counts[kind] += 1
                self.probes.append(Probe(case, change))
                return True
        return False

    def first(self, count: int) -> list[Probe]:
        """Return so many probes and their share of controls, page by page for the judge's cache."""
        chosen = [*self.probes[:count], *self.controls[: -(-count // PROBES_A_CONTROL)]]
        return sorted(chosen, key=lambda probe: probe.case.claim.url)


class Drafting:
    """Reads as many claims and pages as a number of probes needs."""

    def __init__(self, agent: str, claims: PassedClaims, reader: CaseReader, draft: Draft) -> None:
        self.claims = claims
        self.draft = draft
        self._agent = agent
        self._reader = reader

    async def first(self, count: int) -> list[Probe]:
        """Return so many probes with their controls, or all that there are.

        Raises:
            UsageError: no claim passed by a quotation from a page that is stored.
        """
        for claim in self.claims.quoted:
            case = await self._reader.case(claim)
            if case is not None:
                await asyncio.to_thread(self.draft.add, case)
            if len(self.draft.probes) >= count:
                break
        is_more = True
        while is_more and len(self.draft.probes) < count:
            is_more = await asyncio.to_thread(self.draft.add_further)
        if not self.draft.probes:
            claims = counted(len(self.claims.quoted), "claim")
            raise UsageError(
                f"nothing to probe: of {claims} of {self._agent} that passed by a quotation from a "
                "page, none has a page on which its fact can be changed"
            )
        return self.draft.first(count)
