"""The interface of eval scripts (eval-scripts.md): build the rubric, extract, verify, summarise."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from bisect import bisect_left
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from mind2web2.errors import JudgeError, Mind2Web2Error
from mind2web2.judge.protocol import Judge
from mind2web2.prompts import NO_INSTRUCTION
from mind2web2.rubric.node import FIELDS, AggregationStrategy, VerificationNode
from mind2web2.rubric.tree_writing import tree_as_dict
from mind2web2.rubric.verdicts import Evidence
from mind2web2.utils.api_misuse import (
    note_added,
    note_ignored_argument,
    report_misuse,
    script_api,
)
from mind2web2.utils.text import cut
from mind2web2.verification.extractor import (
    EvaluatorConfig,
    Extractor,
    create_evaluator,
)
from mind2web2.verification.script_access import NOT_PASSED, as_judge, limits_of
from mind2web2.verification.verifier import Prerequisites, Sources, Verifier

if TYPE_CHECKING:
    from mind2web2.pages.captures import PageCapture

__all__ = ["AggregationStrategy", "Evaluator", "VerificationNode"]

log = logging.getLogger(__name__)


def leaves_below(root: VerificationNode) -> list[VerificationNode]:
    """Return the leaves of a tree in rubric order."""
    return [node for node in root.walk() if not node.children]


def tree_statistics(root: VerificationNode) -> dict[str, int]:
    """Return the edges of the longest branch, and the number of nodes and leaves."""
    levels: dict[int, int] = {}
    leaf_count = 0
    for node in root.walk():
        levels[id(node)] = 0 if node is root else levels[id(node.parent)] + 1
        leaf_count += not node.children
    return {
        "depth": max(levels.values()),
        "total_nodes": len(levels),
        "leaf_nodes": leaf_count,
    }


def plain_info(info: Any) -> Any:
    """Return a script's own data as JSON can hold it.

    Dates, URLs and templates become text and objects.
    """
    plain = to_jsonable_python(info, fallback=str, bytes_mode="base64")
    # JSON has no infinity; pydantic keeps it as a number here.
    return json.loads(json.dumps(plain), parse_constant=str)


_LEAF_STATUSES = ("passed", "failed", "skipped", "initialized")
_NODE_FIELDS = frozenset({*FIELDS, "tags"})
_GIVEN_FIELDS = (
    "id",
    "desc",
    "parent",
    "critical",
    "score",
    "status",
    "strategy",
    "tags",
)
_BY_SCRIPT = "checked by the script without a judge"
# Reading one of these never runs a script's own code.
_SHOWN_TYPES = (str, int, float, bool, type(None), list, tuple, dict, set)
_MAX_CHARS_SHOWN = 80


@script_api
class Rubric:
    """A tree that an eval script adds nodes to, and looks for them in."""

    def __init__(self) -> None:
        self.root: VerificationNode | None = None
        self.logger: logging.Logger = log
        self._last_suffix: dict[str, int] = {}

    def add_parallel(
        self, id: str, desc: str, parent: VerificationNode | None = None, **kwargs: Any
    ) -> VerificationNode:
        """Add an inner node whose non-critical children are averaged."""
        return self._add(id, desc, parent, {**kwargs, "strategy": AggregationStrategy.PARALLEL})

    def add_sequential(
        self, id: str, desc: str, parent: VerificationNode | None = None, **kwargs: Any
    ) -> VerificationNode:
        """Add an inner node whose children count up to the first shortfall."""
        return self._add(id, desc, parent, {**kwargs, "strategy": AggregationStrategy.SEQUENTIAL})

    def add_leaf(
        self,
        id: str,
        desc: str,
        parent: VerificationNode | None = None,
        critical: bool = False,
        score: float = 0.0,
        status: str = "initialized",
        **kwargs: Any,
    ) -> VerificationNode:
        """Add a leaf to be verified.

        Raises:
            ValueError: a score other than 0.0 and 1.0, an unknown status, or non-critical under a
                critical parent.
        """
        if score not in (0.0, 1.0):
            raise ValueError(f"leaf '{id}': score must be 0.0 or 1.0, not {score!r}")
        if status not in _LEAF_STATUSES:
            raise ValueError(
                f"leaf '{id}': status must be one of {', '.join(_LEAF_STATUSES)}, not {status!r}"
            )
        given = {**kwargs, "critical": critical, "score": score, "status": status}
        return self._add(id, desc, parent, given)

    def add_custom_node(
        self,
        result: Any,
        id: str,
        desc: str,
        parent: VerificationNode | None = None,
        critical: bool = True,
        *,
        values: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> VerificationNode:
        """Add a leaf that the script has decided: passed if ``result`` is truthy, else failed.

        Args:
            values: what the result rests on, by name; the evidence shows it.
        """
        node = self.add_leaf(id, desc, parent, critical=critical, **kwargs)
        passed = bool(result)
        condition = (
            _condition(result, passed) if values is None else _condition_text(values, passed)
        )
        evidence = Evidence(decided_by="script", reason=f"{_BY_SCRIPT}: {condition}")
        node.decide(float(passed), "passed" if passed else "failed", evidence)
        return node

    def add_existence_node(
        self, result: Any, id: str, desc: str, **kwargs: Any
    ) -> VerificationNode:
        """Add a leaf that says whether something was given; the same as ``add_custom_node``."""
        return self.add_custom_node(result, id, desc, **kwargs)

    def _add(
        self,
        node_id: str,
        desc: str,
        parent: VerificationNode | None,
        given: dict[str, Any],
    ) -> VerificationNode:
        above = parent if parent is not None else self._started_root()
        if not isinstance(above, VerificationNode):
            problem = (
                f"gives node '{node_id}' the parent {above!r}:"
                " pass the node, as add_parallel returns it"
            )
            report_misuse(problem)
            raise TypeError(problem)
        known = {name: value for name, value in given.items() if name in _NODE_FIELDS}
        self._warn_of_unknown(f"node '{node_id}'", given.keys() - known.keys(), _GIVEN_FIELDS)
        node = VerificationNode(id=self._free_id(str(node_id)), desc=str(desc), **known)
        above.add_node(node)
        note_added(node.id, is_inner="strategy" in given)
        return node

    def _free_id(self, wanted: str) -> str:
        if self.check_id_available(wanted):
            return wanted
        # From the last one given, which a refused node may have left free.
        suffix = self._last_suffix.get(wanted, 1)
        while not self.check_id_available(f"{wanted}_{suffix}"):
            suffix += 1
        self._last_suffix[wanted] = suffix
        return f"{wanted}_{suffix}"

    # Looking things up

    def find_node(self, node_id: str) -> VerificationNode | None:
        """Return the node with this id, or ``None``."""
        return None if self.root is None else self.root.find(node_id)

    def get_all_node_ids(self) -> list[str]:
        """Return all ids, sorted."""
        return [] if self.root is None else self.root.node_ids()

    def check_id_available(self, node_id: str) -> bool:
        """Tell whether no node has this id yet."""
        return self.find_node(node_id) is None

    def get_node_count(self) -> int:
        """Return the number of nodes, the root included."""
        if self.root is None:
            return 0
        return sum(1 for _ in self.root.walk())

    def _started_root(self) -> VerificationNode:
        if self.root is None:
            raise ValueError("the evaluation has no rubric yet: call initialize(...) first")
        return self.root

    def _warn_of_unknown(self, where: str, names: Iterable[str], known: Sequence[str]) -> None:
        for name in sorted(names):
            note_ignored_argument(name, where, known)
            self.logger.warning("unknown argument ignored where=%s name=%s", where, name)


def _condition_text(values: Mapping[str, Any], passed: bool) -> str:
    """Say whether a script's condition was met, with the values that it rests on."""
    shown = ", ".join(f"{name}: {_short_repr(value)}" for name, value in values.items())
    return f"{_met_text(passed)} ({shown})"


def _condition(result: Any, passed: bool) -> str:
    """Say whether a script's condition was met.

    The text has the value where that says more than yes or no.
    """
    met = _met_text(passed)
    if (
        type(result) not in _SHOWN_TYPES
        or isinstance(result, bool)
        or (passed and not isinstance(result, str | int | float))
    ):
        return met
    return f"{met} (value: {_short_repr(result)})"


def _met_text(passed: bool) -> str:
    return "met" if passed else "not met"


def _short_repr(value: Any) -> str:
    if type(value) not in _SHOWN_TYPES:
        return type(value).__name__
    return cut(repr(value), _MAX_CHARS_SHOWN)


Template = TypeVar("Template", bound=BaseModel)
BatchItem = tuple[str, Sources, VerificationNode | None, str | None]

_ITEM = ("claim", "sources", "node", "additional_instruction")
_INITIALIZED_BY = (
    "task_id",
    "strategy",
    "agent_name",
    "answer_name",
    "client",
    "task_description",
    "answer",
    "global_cache",
    "global_semaphore",
    "logger",
    "default_model",
    "extract_model",
    "verify_model",
    "config",
    "browser_manager",
)


class _Extractions:
    """The extractions in the order of the calls, whichever ended first."""

    def __init__(self) -> None:
        self._numbers: list[int] = []  # of each of them, the number of its call
        self._calls = itertools.count()
        self.results: list[dict[str, Any]] = []

    async def record(self, name: str, extraction: Coroutine[Any, Any, Template]) -> Template:
        """Return the value of an extraction, and record it."""
        number = next(self._calls)
        value = await extraction
        result = plain_info(value.model_dump(mode="json", warnings=False))
        place = bisect_left(self._numbers, number)
        self._numbers.insert(place, number)
        self.results.insert(place, {"type": name, "result": result})
        return value


@script_api
class Evaluator(Rubric):
    """One answer's evaluation: a rubric tree, and the judge that decides its leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.logger = log
        self.extractor: Extractor | None = None
        self.verifier: Verifier | None = None
        self.agent_name = "unknown_agent"
        self.answer_name = "unknown_answer"
        self._judge: Judge | None = None
        self._judge_models = ("", "")
        self._extractions = _Extractions()
        self._ground_truth: list[dict[str, Any]] = []
        self._custom_info: list[dict[str, Any]] = []

    def initialize(
        self,
        task_id: str,
        strategy: AggregationStrategy = AggregationStrategy.PARALLEL,
        agent_name: str | None = None,
        answer_name: str | None = None,
        *,
        client: Any = None,
        task_description: str | None = None,
        answer: str = NOT_PASSED,
        global_cache: Any = None,
        global_semaphore: Any = None,
        logger: logging.Logger | None = None,
        default_model: str = "o4-mini",
        extract_model: str | None = None,
        verify_model: str | None = None,
        config: EvaluatorConfig | None = None,
        browser_manager: PageCapture | None = None,
        **unknown: Any,
    ) -> VerificationNode:
        """Start an evaluation and return the root of its rubric.

        Args:
            strategy: how the root's children make up the score.
            client: an ``LLMClient`` or any object with ``async_response``.
            task_description: shown to the judge, and the root's description.
            answer: the markdown to judge.
            global_semaphore: the run's limits, a ``DualSemaphore``.
            default_model: for extraction and verification unless they are named apart; in a run,
                the run's judge answers whatever is named here.
            browser_manager: captures pages that are not stored.
            unknown: ignored; the run says so in the end.
        """
        self.logger = logger or log
        self._warn_of_unknown("initialize", unknown, _INITIALIZED_BY)
        description = task_description or f"Evaluation for {task_id}"
        self.agent_name = agent_name or "unknown_agent"
        self.answer_name = answer_name or "unknown_answer"
        llm_limit, _ = limits_of(global_semaphore)
        self._judge = as_judge(client, llm_limit) if client is not None else None
        self._ground_truth, self._custom_info = [], []
        self._extractions = _Extractions()
        self._last_suffix = {}
        self.root = VerificationNode(id="root", desc=description, strategy=strategy)
        models = (verify_model or default_model, extract_model or default_model)
        self._judge_models = models
        if self._judge is not None:
            self._judge_models = (
                self._judge.model_for(models[0]),
                self._judge.model_for(models[1]),
            )
            self.extractor, self.verifier = create_evaluator(
                client=self._judge,
                task_description=description,
                answer=answer,
                global_cache=global_cache,
                global_semaphore=global_semaphore,
                logger=logger,
                default_model=default_model,
                extract_model=extract_model,
                verify_model=verify_model,
                config=config,
                browser_manager=browser_manager,
            )
        return self.root

    # Asking the judge

    @property
    def _extraction_results(self) -> list[dict[str, Any]]:
        """Scripts read the last of these."""
        return self._extractions.results

    async def extract(
        self,
        prompt: str,
        template_class: type[Template],
        extraction_name: str = "extraction",
        source: str | None = None,
        additional_instruction: str | None = None,
        *,
        use_screenshot: bool = True,
    ) -> Template:
        """Fill ``template_class`` from the answer, or from the page at ``source``, and record it.

        Args:
            source: a URL; an empty one is a page that is unavailable, which gives an empty
                instance.

        Raises:
            ValueError: ``source`` is not a string.
            JudgeError: the judge failed for good.
        """
        if self.extractor is None:
            report_misuse("needs a judge: call initialize(..., client=client)")
            raise ValueError("extract needs a client: call initialize(..., client=...) first")
        if source is not None and not isinstance(source, str):
            raise ValueError(f"extract takes one URL as source, not {source!r}")
        instruction = additional_instruction or NO_INSTRUCTION
        if source is None:
            extraction = self.extractor.simple_extract(
                prompt, template_class, instruction, extraction_name=extraction_name
            )
        else:
            extraction = self.extractor.extract_from_url(
                prompt,
                source,
                template_class,
                additional_instruction=instruction,
                use_screenshot=use_screenshot,
                extraction_name=extraction_name,
            )
        return await self._extractions.record(extraction_name, extraction)

    async def verify(
        self,
        claim: str,
        node: VerificationNode | None,
        sources: Sources = None,
        *,
        extra_prerequisites: Prerequisites = None,
        additional_instruction: str | None = NO_INSTRUCTION,
        majority_vote: bool | None = None,
        num_trials: int | None = None,
        use_screenshot: bool | None = None,
        required: Mapping[str, Any] | None = None,
    ) -> bool:
        """Judge ``claim`` and write passed, failed or skipped into ``node``.

        Args:
            node: the leaf; ``None`` for the bool alone.
            sources: nothing judges from the answer alone; one URL against that page; of several,
                the first page that supports the claim decides.
            extra_prerequisites: nodes whose leaves must not have failed.
            majority_vote: ``False`` lets one request decide.
            num_trials: of the vote, odd.
            use_screenshot: ``False`` shows the judge text alone.
            required: values that the claim rests on, by name; if one is empty, the leaf fails, and
                no judge is asked.

        Raises:
            ValueError: ``num_trials`` is even, or the node is its own prerequisite.
            JudgeError: the judge failed for good.
        """
        # A verifier of a script's own may know the published keywords only.
        further: dict[str, Any] = {} if required is None else {"required": required}
        return await self._ready_verifier().verify(
            claim,
            node,
            sources,
            extra_prerequisites=extra_prerequisites,
            additional_instruction=additional_instruction,
            majority_vote=majority_vote,
            num_trials=num_trials,
            use_screenshot=use_screenshot,
            **further,
        )

    async def batch_verify(
        self,
        claims_and_sources: Iterable[BatchItem],
        *,
        extra_prerequisites: Prerequisites = None,
        majority_vote: bool | None = None,
        num_trials: int | None = None,
        use_screenshot: bool | None = None,
    ) -> list[bool | BaseException]:
        """Verify ``(claim, sources, node, additional_instruction)`` tuples at the same time.

        The keywords are those of ``verify``, for all of them.

        Returns:
            The verdicts in input order, an exception in place of one whose arguments made no sense.

        Raises:
            JudgeError: the judge failed for good.
        """
        batch = [_checked_item(item) for item in claims_and_sources]
        options: dict[str, Any] = {
            "extra_prerequisites": extra_prerequisites,
            "majority_vote": majority_vote,
            "num_trials": num_trials,
            "use_screenshot": use_screenshot,
        }
        calls = (
            self.verify(claim, node, sources, additional_instruction=words, **options)
            for claim, sources, node, words in batch
        )
        results = await asyncio.gather(*calls, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and (
                isinstance(result, Mind2Web2Error) or not isinstance(result, Exception)
            ):
                raise result
        return results

    def _ready_verifier(self) -> Verifier:
        if self.verifier is None:
            report_misuse("needs a judge: call initialize(..., client=client)")
            raise ValueError("verify needs a client: call initialize(..., client=...) first")
        return self.verifier

    # Records beside the tree

    def add_ground_truth(self, gt_info: dict[str, Any], gt_type: str = "ground_truth") -> None:
        """Record the script's ground truth in the summary."""
        self._ground_truth.append({gt_type: plain_info(gt_info)})

    def add_custom_info(
        self,
        info: dict[str, Any],
        info_type: str = "custom",
        info_name: str | None = None,
    ) -> None:
        """Record any other data in the summary."""
        self._custom_info.append({info_name or info_type: plain_info(info)})

    # Results

    def score(self) -> float:
        """Return the root's aggregated score, 0.0 without a root.

        Raises:
            JudgeError: a judge request failed for good, so that there is no score.
        """
        self._check_judge()
        return 0.0 if self.root is None else self.root.compute_score(mutate=True)

    def get_summary(self) -> dict[str, Any]:
        """Return the result of the evaluation (eval-scripts.md, "Summary").

        Raises:
            JudgeError: a judge request failed for good, so that there is no result.
        """
        root = self._started_root()
        final_score = self.score()
        records = self.extractor.records if self.extractor is not None else []
        undecided = {
            id(node): node
            for node in leaves_below(root)
            # A script may set the score alone, and it counts.
            if (node.verdict.status, node.verdict.score) == ("initialized", 0.0)
        }
        if self._judge is not None:
            self._judge.leaves_left_open.update(undecided)
        return {
            "agent_name": self.agent_name,
            "answer_name": self.answer_name,
            "final_score": final_score,
            "judge_model": self._judge_models[0],
            "extract_model": self._judge_models[1],
            "eval_breakdown": [
                {
                    "info": self._info() or [{"no_info": "No information recorded"}],
                    "verification_tree": tree_as_dict(root),
                }
            ],
            "tree_statistics": tree_statistics(root),
            "undecided_leaves": [node.id for node in undecided.values()],
            "extractions": [
                record.model_dump(mode="json", exclude_defaults=True) for record in records
            ],
        }

    def _info(self) -> list[dict[str, Any]]:
        extractions = [{each["type"]: each["result"]} for each in self._extraction_results]
        return [*extractions, *self._ground_truth, *self._custom_info]

    async def close(self) -> None:
        """End the evaluation.

        There is nothing to release, as clients and caches belong to the caller.
        """

    def _check_judge(self) -> None:
        failure = None if self._judge is None else self._judge.failure
        if failure is not None:
            raise JudgeError(f"no result, since the evaluation failed: {failure}") from failure


def _checked_item(item: BatchItem) -> BatchItem:
    if not isinstance(item, list | tuple) or len(item) != len(_ITEM):
        parts = (
            f"{len(item)} parts" if isinstance(item, list | tuple) else f"a {type(item).__name__}"
        )
        problem = f"gives batch_verify an item of {parts}: expected ({', '.join(_ITEM)})"
        report_misuse(problem)
        raise TypeError(problem)
    claim, sources, node, additional_instruction = item
    return claim, sources, node, additional_instruction
