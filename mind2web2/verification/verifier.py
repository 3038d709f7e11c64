"""The verifier: a claim against the answer or its sources, a verdict with evidence on a leaf."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from mind2web2.errors import MachineError, Mind2Web2Error, PageBugError
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.session import cut_off_noted
from mind2web2.prompts import NO_INSTRUCTION, encodable
from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.values import is_empty
from mind2web2.rubric.verdicts import ALWAYS, DEFAULT_TRIALS, Evidence, check_trials
from mind2web2.scheduling.deferral import (
    Request,
    current_deferral,
    decide,
    decided,
    deferrable,
    prerequisites_now,
    reach,
    toolkit_at_work,
)
from mind2web2.scheduling.options import current_options
from mind2web2.scheduling.prerequisites import NotedPrerequisites
from mind2web2.urls.parts import lookup_key
from mind2web2.utils.api_misuse import script_api
from mind2web2.verification.claims import ClaimJudging, evidence_of
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.lookahead import asked_ahead, may_look_ahead
from mind2web2.verification.messages import BinaryEvalResult
from mind2web2.verification.run_questions import Verification
from mind2web2.verification.script_access import ScriptAccess

__all__ = ["BinaryEvalResult", "Prerequisites", "Sources", "Verifier", "urls_of"]

# Returns the URLs, and whether there were sources at all; raises the error of reading them.
NotedSources = Callable[[], tuple[list[str], bool]]
Prerequisites = Sequence[VerificationNode | None] | VerificationNode | None
Sources = str | Iterable[str | None] | None
OPTIONS = frozenset(
    {
        *(
            "extra_prerequisites",
            "additional_instruction",
            "majority_vote",
            "num_trials",
            "use_screenshot",
        ),
        "required",
    }
)


@script_api
class Verifier(ScriptAccess):
    """Judges claims and writes verdicts into leaves.

    The keyword arguments of its methods are ``additional_instruction``, ``extra_prerequisites``,
    ``majority_vote``, ``num_trials``, ``use_screenshot`` and ``required``, as in ``Evaluator.verify``.
    """

    def __init__(self, context: EvaluationContext) -> None:
        super().__init__(context)
        # The tasks that ask for verdicts, beginning with the script's own; kept, so that no later one passes
        # for one of them.
        self._asking_tasks: set[asyncio.Task[object] | None] = {_current_task()}

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
        options: dict[str, Any] = {
            "extra_prerequisites": extra_prerequisites,
            "additional_instruction": additional_instruction,
            "majority_vote": majority_vote,
            "num_trials": num_trials,
            "use_screenshot": use_screenshot,
            "required": required,
        }
        await decided([node])
        noted = self.noted(claim, node, sources, **options)
        with toolkit_at_work():
            return await noted

    def noted(
        self,
        claim: str,
        node: VerificationNode | None,
        sources: Sources,
        *,
        extra_prerequisites: Prerequisites = None,
        **options: Any,
    ) -> Coroutine[Any, Any, bool]:
        """Note a verification with all it depends on, as it stands now, and return the rest of the work.

        The keywords are those of ``verify``.

        Raises:
            ValueError: ``num_trials`` is even, or the node is its own prerequisite.
        """
        deferral = current_deferral()
        if deferral is not None:
            deferral.count_verification()
        extra = _nodes(extra_prerequisites)
        names = tuple(encodable(each.id) for each in extra)
        verification = replace(
            self._filled_in(claim, node, **options), prerequisites=names
        )
        prerequisites = prerequisites_now(node, extra)
        # While there is one such task, one call comes after another, and the verdicts by then are the same
        # in every run.
        self._asking_tasks.add(_current_task())
        # The configuration is the script's, and may change.
        judging = ClaimJudging(
            replace(self._context, config=copy(self._context.config))
        )
        looks_ahead = not is_used_up(sources) and may_look_ahead(self._context)
        noted = _noted_urls(sources)
        return self._verified(
            judging, verification, node, noted, prerequisites, looks_ahead=looks_ahead
        )

    async def _verified(
        self,
        judging: ClaimJudging,
        verification: Verification,
        node: VerificationNode | None,
        sources: NotedSources,
        prerequisites: NotedPrerequisites,
        *,
        looks_ahead: bool,
    ) -> bool:
        with cut_off_noted(
            self._context.judge, verification.node_id or verification.claim
        ):
            # All that was started together has looked by now, and may decide without a question, as a skip.
            await asyncio.sleep(0)
            if looks_ahead and verification.missing is None and prerequisites.is_open:
                reason = await self._reason_ahead(
                    judging, verification, sources, prerequisites
                )
            else:
                reason = await prerequisites.skip_reason()
            reach(node)
            skip_reason = await self._gate(verification, reason)
            if skip_reason is not None:
                return self._skip(verification, node, skip_reason)
            return await self._judge(judging, verification, node, sources)

    async def _reason_ahead(
        self,
        judging: ClaimJudging,
        verification: Verification,
        sources: NotedSources,
        prerequisites: NotedPrerequisites,
    ) -> str | None:
        """Return why the verification is skipped, and ask its questions until that is known."""
        try:
            urls, had_sources = sources()
        except Exception:  # it is raised again where it counts
            return await prerequisites.skip_reason()
        asking = asked_ahead(
            judging.context, verification, urls, had_sources, prerequisites
        )
        async with asking:
            return await prerequisites.skip_reason()

    async def _judge(
        self,
        judging: ClaimJudging,
        verification: Verification,
        node: VerificationNode | None,
        sources: NotedSources,
    ) -> bool:
        try:
            if verification.missing is not None:
                reason = (
                    f"not judged, because the answer gives no {verification.missing}"
                )
                supported, evidence = (
                    False,
                    evidence_of(verification, "script", reason=reason),
                )
            else:
                supported, evidence = await judging.judged(verification, *sources())
        except PageBugError as error:
            supported, evidence = self._error_evidence(verification, str(error))
        except Mind2Web2Error:
            # The judge or the disk failed for good, which is no verdict.
            raise
        except MemoryError as error:
            # It says as little about the claim as a disk that fails.
            failure = MachineError(
                f"no memory was left to verify node '{verification.node_id}'"
            )
            raise self._context.judge.fail(failure) from error
        except Exception as error:
            # Of the sources, for instance, which are part of the question (scoring.md, "Verdicts").
            reason = f"{type(error).__name__}: {error}"
            supported, evidence = self._error_evidence(verification, reason)
        for check in evidence.pages:
            self._context.note_captured(check.url)
            if check.outcome == "unavailable":
                self.logger.warning(
                    "page is unavailable node=%s url=%s reason=%s",
                    verification.node_id,
                    check.url,
                    check.reason,
                )
        if node is not None:
            decide(
                node, float(supported), "passed" if supported else "failed", evidence
            )
        self.logger.info(
            "verified node=%s supported=%s claim=%s why=%s",
            verification.node_id,
            supported,
            verification.claim,
            _why(evidence),
        )
        return supported

    def _error_evidence(
        self, verification: Verification, reason: str
    ) -> tuple[bool, Evidence]:
        """Return the verdict of a leaf that an error costs, while it is handled; a later run judges again."""
        self.logger.exception(
            "verification failed with an error node=%s", verification.node_id
        )
        self._context.judge.note("doubts", f"{verification.node_id}: {reason}")
        return False, evidence_of(verification, "error", reason=reason)

    def _filled_in(
        self,
        claim: str,
        node: VerificationNode | None,
        additional_instruction: str | None = None,
        majority_vote: bool | None = None,
        num_trials: int | None = None,
        use_screenshot: bool | None = None,
        required: Mapping[str, Any] | None = None,
    ) -> Verification:
        config = self._context.config
        trials = config.default_num_trials if num_trials is None else num_trials
        check_trials(trials)
        by_majority = (
            config.default_majority_vote if majority_vote is None else majority_vote
        )
        trials = trials if by_majority else 1
        rule = current_options().votes
        if trials == DEFAULT_TRIALS and rule != ALWAYS:
            trials = int(rule)
        if additional_instruction is None or additional_instruction == NO_INSTRUCTION:
            additional_instruction = config.default_additional_instruction
        return Verification(
            claim=encodable(str(claim)),
            node_id=None if node is None else encodable(node.id),
            additional_instruction=encodable(str(additional_instruction)),
            num_trials=trials,
            # A claim without a leaf steers its script.
            is_gate=node is None or node.critical,
            use_screenshot=bool(
                config.default_use_screenshot
                if use_screenshot is None
                else use_screenshot
            ),
            missing=next(
                (name for name, value in (required or {}).items() if is_empty(value)),
                None,
            ),
        )

    async def _gate(self, verification: Verification, reason: str | None) -> str | None:
        if len(self._asking_tasks) == 1:
            return reason
        subject = QuestionContext(
            "verify", node=verification.node_id, claim=verification.claim
        )
        return await self._context.judge.record_skip_decision(subject, reason)

    def _skip(
        self, verification: Verification, node: VerificationNode | None, reason: str
    ) -> bool:
        if node is not None:
            decide(
                node,
                0.0,
                "skipped",
                evidence_of(verification, "prerequisite", reason=reason),
            )
        self.logger.info(
            "verification skipped node=%s reason=%s", verification.node_id, reason
        )
        return False


def urls_of(sources: Sources) -> list[str]:
    """Return the URLs to check, in order: one a page, empty ones left out (eval-scripts.md, ``sources``)."""
    # Templates may hold URLs of pydantic's own types, which are no strings.
    if isinstance(sources, list | tuple | set | frozenset) or (
        isinstance(sources, Iterable) and not isinstance(sources, str)
    ):
        urls = [url for source in sources for url in urls_of(source)]
    else:
        urls = [url] if (url := "" if sources is None else str(sources).strip()) else []
    pages: dict[str, str] = {}
    for url in urls:
        pages.setdefault(lookup_key(url) or url, url)
    return list(pages.values())


def _noted_urls(sources: Sources) -> NotedSources:
    """Read the sources now, as a script may change its lists; iterators, once they are needed."""
    if is_used_up(sources):
        return lambda: (urls_of(sources), True)
    try:
        noted = urls_of(sources), _are_given(sources)
    except Exception as error:
        # The sources are part of the question: the error will cost this leaf only.
        return _raising(error)
    return lambda: noted


def _are_given(sources: Sources) -> bool:
    """Tell sources from none: only ``None`` and an empty list judge the answer alone (eval-scripts.md)."""
    return sources is not None and not (isinstance(sources, list) and not sources)


def _raising(error: Exception) -> NotedSources:
    def read() -> tuple[list[str], bool]:
        raise error

    return read


def is_used_up(sources: Any) -> bool:
    """Tell whether reading the sources, or some among them, changes them."""
    if isinstance(sources, list | tuple | set | frozenset):
        return any(is_used_up(source) for source in sources)
    return isinstance(sources, Iterator)


def _nodes(prerequisites: Prerequisites) -> list[VerificationNode]:
    if isinstance(prerequisites, VerificationNode):
        return [prerequisites]
    return [node for node in prerequisites or () if node is not None]


def request_of(
    verifier: Verifier | None,
    claim: str,
    node: VerificationNode | None,
    sources: Sources,
    **options: Any,
) -> Request | None:
    """Return a verification as one that may be deferred, ``None`` where it may not."""
    if verifier is None or not has_own(verifier, Verifier, "verify", "noted"):
        return None
    if (
        options.keys() - OPTIONS
        or is_used_up(sources)
        or not verifier.may_defer(sources)
    ):
        return None
    return Request([node], lambda: [verifier.noted(claim, node, sources, **options)])


def has_own(instance: object, kind: type, *names: str) -> bool:
    """Tell whether the methods of an object are those of ``kind``, which no subclass has replaced."""
    return all(
        getattr(type(instance), name, None) is getattr(kind, name)
        and name not in vars(instance)
        for name in names
    )


def _request_without_sources(
    verifier: Verifier, claim: str, node: VerificationNode | None = None, **options: Any
) -> Request | None:
    return request_of(verifier, claim, node, None, **options)


def _request_with_sources(
    verifier: Verifier,
    claim: str,
    sources: Sources,
    node: VerificationNode | None = None,
    **options: Any,
) -> Request | None:
    return request_of(verifier, claim, node, sources, **options)


deferrable(Verifier.verify, request_of)
deferrable(Verifier.simple_verify, _request_without_sources)
deferrable(Verifier.verify_by_url, _request_with_sources)
deferrable(Verifier.verify_by_urls, _request_with_sources)


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # an evaluation may be set up outside of any loop
        return None


def _why(evidence: Evidence) -> str:
    """Return the decisive reasoning, for the log."""
    votes = [
        *evidence.votes,
        *(vote for check in evidence.pages for vote in check.votes),
    ]
    return evidence.reason or (votes[-1].reasoning if votes else "")


BatchItem = tuple[str, Sources, VerificationNode | None, str | None]


class VerificationBatch:
    """Verifies ``(claim, sources, node, additional_instruction)`` tuples.

    Args:
        verifier: returns the verifier; an error that it raises stands in the place of a verdict.
        options: of all of them, as ``Verifier.verify`` takes them.
    """

    def __init__(
        self,
        verifier: Callable[[], Verifier],
        items: Sequence[BatchItem],
        options: dict[str, Any],
    ) -> None:
        self._verifier = verifier
        self._items = items
        self._options = options

    async def verdicts(self) -> list[bool | BaseException]:
        """Return the verdicts in input order, an exception in place of each that raised."""
        noted = self._noted()
        coroutines = [each for each in noted if not isinstance(each, Exception)]
        verdicts = iter(await asyncio.gather(*coroutines, return_exceptions=True))
        return [
            each if isinstance(each, Exception) else next(verdicts) for each in noted
        ]

    def started(self) -> list[Coroutine[Any, Any, bool] | None]:
        """Note all of them and return the rest of the work, ``None`` where the arguments make no sense."""
        return [None if isinstance(each, Exception) else each for each in self._noted()]

    def _noted(self) -> list[Coroutine[Any, Any, bool] | Exception]:
        """Record all verifications before the first one starts."""
        noted: list[Coroutine[Any, Any, bool] | Exception] = []
        try:
            for claim, sources, node, words in self._items:
                given = {**self._options, "additional_instruction": words}
                try:
                    noted.append(self._verifier().noted(claim, node, sources, **given))
                except Exception as error:
                    # It stands in the place of that verdict (eval-scripts.md).
                    noted.append(error)
        except BaseException:
            for each in noted:
                if not isinstance(each, Exception):
                    each.close()
            raise
        return noted
