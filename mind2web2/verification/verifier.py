"""The verifier: a claim against the answer or its sources, a verdict with evidence on a leaf."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from mind2web2.errors import MachineError, Mind2Web2Error, PageBugError
from mind2web2.judge.protocol import cut_off_noted
from mind2web2.prompts import NO_INSTRUCTION, encodable
from mind2web2.rubric.node import VerificationNode, blocks
from mind2web2.rubric.values import is_empty
from mind2web2.rubric.verdicts import NO_PAGE_NAMED, Evidence, Undecided, skip_reason
from mind2web2.rubric.vote_rule import checked_trials
from mind2web2.urls.parts import lookup_key
from mind2web2.utils.api_misuse import script_api
from mind2web2.verification.run_questions import (
    AskedClaim,
    BinaryEvalResult,
    Verification,
    evidence_of,
)
from mind2web2.verification.script_access import ScriptAccess

__all__ = ["BinaryEvalResult", "Prerequisites", "Sources", "Verifier", "urls_of"]

Prerequisites = Sequence[VerificationNode | None] | VerificationNode | None
Sources = str | Iterable[str | None] | None
# The URLs, and whether there were sources at all; or the error of reading them.
ReadSources = tuple[list[str], bool] | Exception


@script_api
class Verifier(ScriptAccess):
    """Judges claims and writes verdicts into leaves.

    The keyword arguments of its methods are ``additional_instruction``, ``extra_prerequisites``,
    ``majority_vote``, ``num_trials``, ``use_screenshot`` and ``required``, as in
    ``Evaluator.verify``.
    """

    async def simple_verify(
        self, claim: str, node: VerificationNode | None = None, **kwargs: Any
    ) -> bool:
        """Judge a claim from the answer alone."""
        return await self.verify(claim, node, None, **kwargs)

    async def verify_by_url(
        self, claim: str, url: str, node: VerificationNode | None = None, **kwargs: Any
    ) -> bool:
        """Judge a claim against one page."""
        return await self.verify(claim, node, url, **kwargs)

    async def verify_by_urls(
        self,
        claim: str,
        urls: Sequence[str | None],
        node: VerificationNode | None = None,
        **kwargs: Any,
    ) -> bool:
        """Judge a claim against several pages; the first that supports it decides."""
        return await self.verify(claim, node, urls, **kwargs)

    async def verify(
        self,
        claim: str,
        node: VerificationNode | None,
        sources: Sources,
        *,
        extra_prerequisites: Prerequisites = None,
        additional_instruction: str | None = None,
        majority_vote: bool | None = None,
        num_trials: int | None = None,
        use_screenshot: bool | None = None,
        required: Mapping[str, Any] | None = None,
    ) -> bool:
        """Judge a claim, write the verdict into ``node`` and return it (eval-scripts.md).

        Raises:
            ValueError: ``num_trials`` is even, or the node is its own prerequisite.
            JudgeError: the judge failed for good; the node stays undecided.
        """
        prerequisites = _nodes(extra_prerequisites)
        # A claim without a node of its own has the same way as others.
        leaf = node or VerificationNode(id="claim", desc="claim")
        config = self._context.config
        if additional_instruction in (None, NO_INSTRUCTION):
            additional_instruction = config.default_additional_instruction
        if use_screenshot is None:
            use_screenshot = config.default_use_screenshot
        verification = Verification(
            claim=encodable(str(claim)),
            node_id=None if node is None else encodable(node.id),
            additional_instruction=encodable(str(additional_instruction)),
            num_trials=self._trials(majority_vote, num_trials),
            use_screenshot=bool(use_screenshot),
            prerequisites=tuple(encodable(each.id) for each in prerequisites),
            missing=_missing(required or {}),
        )
        most_open = self._context.run.most_open_gates
        gates = list(islice(blocks(leaf, prerequisites), most_open + 1))
        pages = None if _is_used_up(sources) else _read(sources)
        name = verification.node_id or verification.claim
        self._context.judge.leaves_begun[id(leaf)] = leaf
        with cut_off_noted(self._context.judge, name):
            # All that was started together looks at its gates before one of them is decided.
            await asyncio.sleep(0)
            if gates and gates[0].undecided is None:
                return self._skip(verification, leaf, gates[0])
            pages = pages or _read(sources)
            return await self._judge(verification, leaf, pages, _behind(gates, most_open))

    def _trials(self, majority_vote: bool | None, num_trials: int | None) -> int:
        config = self._context.config
        trials = checked_trials(config.default_num_trials if num_trials is None else num_trials)
        if majority_vote is None:
            majority_vote = config.default_majority_vote
        return trials if majority_vote else 1

    async def _judge(
        self,
        verification: Verification,
        leaf: VerificationNode,
        pages: ReadSources,
        behind: int,
    ) -> bool:
        try:
            supported, evidence = await self._verdict(verification, pages, behind)
        except PageBugError as error:
            supported, evidence = self._error_evidence(verification, str(error))
        except Mind2Web2Error:
            # The judge or the disk failed for good, which is not a verdict.
            raise
        except MemoryError as error:
            # It says as little about the claim as a disk that fails.
            failure = MachineError(f"no memory was left to verify node '{verification.node_id}'")
            raise self._context.judge.fail(failure) from error
        except Exception as error:
            # The sources may raise it, for instance. They are part of the question (scoring.md,
            # "Verdicts").
            reason = f"{type(error).__name__}: {error}"
            supported, evidence = self._error_evidence(verification, reason)
        if isinstance(evidence, Undecided):
            leaf.leave_undecided(replace(evidence, behind=behind))
            return supported
        self._note_pages(verification, evidence)
        leaf.decide(float(supported), "passed" if supported else "failed", evidence)
        self.logger.info(
            "verified node=%s supported=%s claim=%s why=%s",
            verification.node_id,
            supported,
            verification.claim,
            _why(evidence),
        )
        return supported

    async def _verdict(
        self, verification: Verification, pages: ReadSources, behind: int
    ) -> tuple[bool, Evidence | Undecided]:
        run = self._context.run
        if behind > run.most_open_gates:
            return run.left_open()
        if verification.missing is not None:
            reason = f"not judged, because the answer gives no {verification.missing}"
            return False, evidence_of(verification, "script", reason=reason)
        if isinstance(pages, Exception):
            raise pages
        urls, had_sources = pages
        if had_sources and not urls:
            return False, evidence_of(verification, "page", reason=NO_PAGE_NAMED)
        claim = AskedClaim(verification, urls)
        return await run.judged(claim, self._context.given(urls))

    def _note_pages(self, verification: Verification, evidence: Evidence) -> None:
        for check in evidence.pages:
            self._context.note_captured(check.url)
            if check.outcome == "unavailable":
                self.logger.warning(
                    "page is unavailable node=%s url=%s reason=%s",
                    verification.node_id,
                    check.url,
                    check.reason,
                )

    def _error_evidence(self, verification: Verification, reason: str) -> tuple[bool, Evidence]:
        """Return the verdict of a leaf that an error costs, while it is handled.

        A later run judges again.
        """
        self.logger.exception("verification failed with an error node=%s", verification.node_id)
        self._context.judge.note("doubts", f"{verification.node_id}: {reason}")
        return False, evidence_of(verification, "error", reason=reason)

    def _skip(
        self,
        verification: Verification,
        leaf: VerificationNode,
        gate: VerificationNode,
    ) -> bool:
        reason = skip_reason(gate.id, gate.verdict.status)
        blocked_by = encodable(gate.id)
        evidence = evidence_of(verification, "prerequisite", reason=reason, blocked_by=blocked_by)
        leaf.decide(0.0, "skipped", evidence)
        self.logger.info("verification skipped node=%s reason=%s", verification.node_id, reason)
        return False


def urls_of(sources: Sources) -> list[str]:
    """Return the URLs to check, in order.

    Each page has one URL, and empty ones are left out (eval-scripts.md, ``sources``).
    """
    # Templates may hold URLs of pydantic's own types, which are not strings.
    if isinstance(sources, Iterable) and not isinstance(sources, str):
        urls = [url for source in sources for url in urls_of(source)]
    else:
        urls = [url] if (url := "" if sources is None else str(sources).strip()) else []
    if len(urls) < 2:
        return urls
    pages: dict[str, str] = {}
    for url in urls:
        pages.setdefault(lookup_key(url) or url, url)
    return list(pages.values())


def _read(sources: Sources) -> ReadSources:
    """Read the sources now, as a script may change its lists; an error costs this leaf only."""
    # Only ``None`` and an empty list judge the answer alone (eval-scripts.md).
    is_empty_list = isinstance(sources, list) and not sources
    try:
        return urls_of(sources), sources is not None and not is_empty_list
    except Exception as error:  # of the script's own iterators
        return error


def _is_used_up(sources: Any) -> bool:
    """Tell whether reading the sources, or some among them, changes them.

    Sources that change are read when needed.
    """
    if isinstance(sources, list | tuple | set | frozenset):
        return any(_is_used_up(source) for source in sources)
    return isinstance(sources, Iterator)


def _behind(gates: Sequence[VerificationNode], most_open: int) -> int:
    """Return how many undecided leaves in a row come before a claim.

    They are too many if a decided leaf blocks the claim.
    """
    behind = len(gates)
    for gate in gates:
        if gate.undecided is None:
            return most_open + 1
        behind = max(behind, gate.undecided.behind + 1)
    return behind


def _missing(required: Mapping[str, Any]) -> str | None:
    """Return the name of the first value that the answer does not give."""
    return next((name for name, value in required.items() if is_empty(value)), None)


def _nodes(prerequisites: Prerequisites) -> list[VerificationNode]:
    if isinstance(prerequisites, VerificationNode):
        return [prerequisites]
    return [node for node in prerequisites or () if node is not None]


def _why(evidence: Evidence) -> str:
    """Return the decisive reasoning, for the log."""
    votes = [
        *evidence.votes,
        *(vote for check in evidence.pages for vote in check.votes),
    ]
    return evidence.reason or (votes[-1].reasoning if votes else "")
