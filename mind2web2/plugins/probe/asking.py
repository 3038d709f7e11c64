"""A judge asked about changed pages, each question as in an evaluation, but with one vote and no images."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from random import Random

from mind2web2.capture.models import CaptureRecord, PageKind
from mind2web2.errors import CacheMiss, MachineError, Mind2Web2Error
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.llm_client.chat import Limit
from mind2web2.pages.library import PageLibrary
from mind2web2.plugins.probe.cases import Case
from mind2web2.plugins.probe.changes import (
    CHANGES,
    CONTROLS,
    Change,
    ChangeKind,
    Discarded,
    change_page,
)
from mind2web2.rubric.node import VerificationNode
from mind2web2.utils.aio import all_or_first_error
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.verifier import Verifier

log = logging.getLogger(__name__)

# The store names this where it names a task.
SOURCE = "probe"
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


@dataclass(frozen=True)
class Reply:
    """The judge's verdict on a changed page; ``supported`` is ``None`` if the judge failed."""

    probe: Probe
    supported: bool | None
    reason: str


class Draft:
    """The probes that were made so far, in the order in which they are asked.

    Each claim has one probe, then each has a second one, and so on. A probe is of the kind that is the rarest
    so far. A small sample therefore reads few pages, and a larger one begins with the same probes.

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
        """Return so many probes with their share of controls, page by page for the judge's cache."""
        chosen = [*self.probes[:count], *self.controls[: -(-count // PROBES_A_CONTROL)]]
        return sorted(chosen, key=lambda probe: probe.case.claim.url)


class _ChangedPage:
    """A page cache with one page, whose text was changed; it takes no other page."""

    def __init__(self, url: str, text: str) -> None:
        self._url = url
        self._text = text

    def has(self, url: str) -> PageKind | None:
        return "web" if url == self._url else None

    def get_web(
        self,
        url: str,  # noqa: ARG002
        get_screenshot: bool = True,  # noqa: ARG002
    ) -> tuple[str, bytes | None]:
        return self._text, None

    def capture_record(self, url: str) -> CaptureRecord:
        return CaptureRecord(
            requested_url=url,
            final_url=url,
            kind="web",
            captured_at="2026-06-01T12:00:00+00:00",
        )

    def get_pdf(self, url: str) -> bytes:
        raise CacheMiss(url)

    def put_web(self, url: str, text: str, screenshot: str | bytes | None) -> None:  # noqa: ARG002
        raise MachineError("a changed page is not stored")

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:  # noqa: ARG002
        raise MachineError("a changed page is not stored")


async def ask_probes(
    judge: CachingJudge,
    probes: Sequence[Probe],
    limit: Limit,
    on_reply: Callable[[], object],
) -> list[Reply]:
    """Ask the judge all probes at once, within the limit; a stored reply costs nothing.

    Raises:
        JudgmentStoreError: replies could not be stored.
    """
    replies = await all_or_first_error(_ask(judge, probe, limit, on_reply) for probe in probes)
    await judge.write_rest()
    return replies


async def _ask(
    judge: CachingJudge, probe: Probe, limit: Limit, on_reply: Callable[[], object]
) -> Reply:
    claim = probe.case.claim
    # Each probe has a session, since a session asks nothing more after a failure.
    session = AnswerJudge(judge, SOURCE, probe.name, limit)
    context = EvaluationContext(
        judge=session,
        model=judge.settings.model,
        task=claim.question,
        answer=probe.case.answer,
        cache=_ChangedPage(claim.url, probe.change.text),
        library=PageLibrary(),
        capture=None,
        llm_limit=limit,
        page_limit=nullcontext(),
        logger=log,
    )
    leaf = VerificationNode(id=claim.leaf, desc=claim.claim)
    try:
        supported = await Verifier(context).verify(
            claim.claim,
            leaf,
            [claim.url],
            additional_instruction=claim.instruction or "None",
            majority_vote=False,
            use_screenshot=False,
            blind=claim.blind,
        )
    except Mind2Web2Error as error:
        return Reply(probe, None, str(session.failure or error))
    finally:
        on_reply()
    evidence = leaf.evidence
    votes = evidence.pages[0].votes if evidence is not None and evidence.pages else ()
    return Reply(probe, supported, votes[0].reasoning if votes else "")


def kinds_asked(replies: Sequence[Reply]) -> list[ChangeKind]:
    """Return the kinds of change among the replies, in their order."""
    asked = {reply.probe.change.kind for reply in replies}
    return [kind for kind in CHANGES if kind in asked]
