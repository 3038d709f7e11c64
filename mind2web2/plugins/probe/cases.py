"""The claims of an agent's stored results that passed by a quotation from a page."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from mind2web2.errors import CaptureError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.prepared_page import PageSettings
from mind2web2.plugins.probe.passages import JudgedPage
from mind2web2.results.result_file import ResultFile
from mind2web2.results.stored_results import latest_results
from mind2web2.rubric.verdicts import BlindQuestion, PageCheck, Quote
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.utils.files import read_regular_file

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PassedClaim:
    """A leaf that passed, and the page and passage that decided it.

    Args:
        question: the task's text, as the judge was shown it.
        instruction: what the script told the judge beside the claim.
        page_sha256: checksum of the page as it was judged.
        reason: the judge's reasoning.
        blind: what the judge was asked in place of the claim.
    """

    task_id: str
    answer_name: str
    leaf: str
    question: str
    claim: str
    instruction: str | None
    url: str
    page_sha256: str | None
    quote: Quote
    reason: str
    blind: BlindQuestion | None = None

    @property
    def place(self) -> str:
        """Return the leaf's place as ``task/answer/leaf``."""
        return f"{self.task_id}/{self.answer_name.removesuffix('.md')}/{self.leaf}"


@dataclass(frozen=True)
class Case:
    """A passed claim with the page and the answer that it is asked with again."""

    claim: PassedClaim
    page: JudgedPage
    answer: str


def passed_claims(
    eval_results_root: Path, agent_name: str, task_ids: Sequence[str] = ()
) -> list[PassedClaim]:
    """Return the claims of an agent's newest results that passed by a quotation found on a page."""
    return [
        claim
        for task_id, answer_name, loaded in latest_results(eval_results_root, agent_name)
        if not task_ids or task_id in task_ids
        for claim in _claims_of(task_id, answer_name, loaded.content)
    ]


def _claims_of(task_id: str, answer_name: str, result: ResultFile) -> Iterator[PassedClaim]:
    for root in result.trees:
        for leaf in root.leaves():
            if leaf.is_passed and leaf.evidence is not None:
                for check in leaf.evidence.pages:
                    yield from _claim_on(task_id, answer_name, root, leaf, check)


def _claim_on(
    task_id: str,
    answer_name: str,
    root: WrittenNode,
    leaf: WrittenNode,
    check: PageCheck,
) -> Iterator[PassedClaim]:
    """Yield the claim if this page supports it by a passage that was found."""
    evidence = leaf.evidence
    if check.outcome != "supported" or evidence is None or evidence.claim is None:
        return
    for vote in check.votes:
        if vote.supported and vote.quote is not None and vote.quote.source == "page":
            yield PassedClaim(
                task_id,
                answer_name,
                leaf.id,
                root.desc,
                evidence.claim,
                evidence.additional_instruction,
                check.url,
                None if check.page is None else check.page.sha256,
                vote.quote,
                vote.reasoning,
                evidence.blind,
            )
            return


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
            page = await self._library.page(
                PageRequest(
                    cache,
                    claim.url,
                    PageSettings(),
                    with_images=False,
                    capture=None,
                    limit=nullcontext(),
                    logger=log,
                )
            )
            answer = read_regular_file(answer_path).decode("utf-8", errors="replace")
        except (CaptureError, OSError) as error:
            log.warning("left out %s: %s", claim.place, error)
            return None
        text = str(page.text)
        quote = claim.quote
        if claim.page_sha256 not in (None, page.sha256):
            log.warning("left out %s: its page has changed since it was judged", claim.place)
            return None
        if quote.start is None or quote.end is None or quote.end > len(text):
            return None
        judged = JudgedPage(claim.claim, text, quote.start, quote.end, claim.url)
        return Case(claim, judged, answer)
