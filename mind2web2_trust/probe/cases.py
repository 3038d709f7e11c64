"""The claims of an agent's stored results that passed by a quotation from a page."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2 import CacheFileSys
from mind2web2.plugin import (
    AgentResults,
    Mind2Web2Error,
    PageLibrary,
    ResultFile,
    WrittenNode,
    read_regular_file,
)
from mind2web2_trust.probe.passages import JudgedPage

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PassedClaim:
    """A leaf that passed, and the page and passage that decided it.

    Args:
        question: the task's text, as the judge was shown it.
        instruction: what the script told the judge beside the claim.
        page_sha256: checksum of the page as it was judged.
        start: where the quoted passage begins in the page's text.
        end: the place behind it.
        reason: the judge's reasoning.
    """

    task_id: str
    answer_name: str
    leaf: str
    question: str
    claim: str
    instruction: str | None
    url: str
    page_sha256: str | None
    start: int | None
    end: int | None
    reason: str

    @property
    def place(self) -> str:
        """Return the leaf's place as ``task/answer/leaf``."""
        return f"{self.task_id}/{self.answer_name.removesuffix('.md')}/{self.leaf}"


@dataclass(frozen=True)
class PassedClaims:
    """The claims of an agent that passed on a page.

    Args:
        quoted: those that passed by a quotation from the page's text.
        others: how many others there are: a screenshot or the address decided, or the judge quoted
            nothing.
    """

    quoted: list[PassedClaim]
    others: int


@dataclass(frozen=True)
class Case:
    """A passed claim with the page and the answer that it is asked with again."""

    claim: PassedClaim
    page: JudgedPage
    answer: str


def passed_claims(
    eval_results_root: Path, agent_name: str, task_ids: Sequence[str] = ()
) -> PassedClaims:
    """Return the claims of an agent's newest results that passed on a page."""
    quoted: list[PassedClaim] = []
    others = 0
    for task_id, answer_name, loaded in AgentResults(eval_results_root, agent_name).latest():
        if task_ids and task_id not in task_ids:
            continue
        for root, leaf in _passed_leaves(loaded.content):
            claims = list(_claims_of(task_id, answer_name, root, leaf))
            quoted += claims
            others += not claims
    return PassedClaims(quoted, others)


def _passed_leaves(result: ResultFile) -> Iterator[tuple[WrittenNode, WrittenNode]]:
    """Yield each leaf that passed on a page, behind the root of its tree."""
    for root in result.trees:
        for leaf in root.leaves():
            if leaf.is_passed and leaf.grounds.pages:
                yield root, leaf


def _claims_of(
    task_id: str, answer_name: str, root: WrittenNode, leaf: WrittenNode
) -> Iterator[PassedClaim]:
    """Yield the leaf's claim on each page that supports it by a passage that was found."""
    evidence = leaf.grounds
    if evidence.claim is None:
        return
    for check in evidence.pages:
        for vote in check.votes if check.outcome == "supported" else ():
            quote = vote.quote
            if vote.supported and quote is not None and quote.source == "page":
                yield PassedClaim(
                    task_id=task_id,
                    answer_name=answer_name,
                    leaf=leaf.id,
                    question=root.desc,
                    claim=evidence.claim,
                    instruction=evidence.additional_instruction,
                    url=check.url,
                    page_sha256=check.shown.sha256,
                    start=quote.start,
                    end=quote.end,
                    reason=vote.reasoning,
                )
                break


class CaseReader:
    """Reads the pages and answers of passed claims.

    Args:
        cache_root: the folder of the agent's cached pages.
        answers_root: the folder of the agent's answers.
        library: prepares pages as an evaluation does.
    """

    def __init__(self, cache_root: Path, answers_root: Path, library: PageLibrary) -> None:
        self._cache_root = cache_root
        self._answers_root = answers_root
        self._library = library
        self._caches: dict[str, CacheFileSys] = {}

    async def case(self, claim: PassedClaim) -> Case | None:
        """Return the case; ``None`` if its page or answer is gone or has changed since."""
        cache = self._caches.setdefault(
            claim.task_id, CacheFileSys(self._cache_root / claim.task_id)
        )
        answer_path = self._answers_root / claim.task_id / claim.answer_name
        try:
            page = await self._library.stored(cache, claim.url)
            answer = read_regular_file(answer_path).decode("utf-8", errors="replace")
        except (Mind2Web2Error, OSError) as error:
            log.warning("left out %s: %s", claim.place, error)
            return None
        text = str(page.text)
        if claim.page_sha256 not in (None, page.sha256):
            log.warning("left out %s: its page has changed since it was judged", claim.place)
            return None
        if claim.start is None or claim.end is None or claim.end > len(text):
            return None
        judged = JudgedPage(claim.claim, text, claim.start, claim.end, claim.url)
        return Case(claim, judged, answer)
