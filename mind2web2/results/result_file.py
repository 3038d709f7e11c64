"""One result: the model that result files are written from and read into.

A result file holds the summary that the eval script returned (eval-scripts.md, "Summary"), and how
the result was made. The file's own JSON is kept as ``document``: a script may add any fields, and
they stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from mind2web2.judge.check_record import CheckRecord
from mind2web2.results.claim_facts import QUOTE_MATCHES
from mind2web2.results.provenance import Provenance
from mind2web2.rubric.verdicts import (
    ExtractionRecord,
    Flag,
    QuoteMatch,
    Rejection,
    Vote,
    aggregate,
)
from mind2web2.rubric.written_tree import WrittenNode, WrittenScore, read_tree
from mind2web2.utils.json_text import JsonObject, mapping, mappings, read_leniently

if TYPE_CHECKING:
    from mind2web2.judge.protocol import JudgeLedger

# Sums of the same numbers may differ by their last digits from one Python to the next.
_TOLERANCE = 1e-9
MAX_TIME_S = 1e9

Seconds = Annotated[float, Field(strict=True, ge=0, le=MAX_TIME_S, allow_inf_nan=False)]


class JudgeUsage(BaseModel):
    """The judge's use for one answer, reused judgments included.

    Args:
        cost_usd: ``None`` where the price is unknown.
        rejections: questions that the judge declined twice.
    """

    model_config = ConfigDict(frozen=True)

    judgments: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    rejections: tuple[Rejection, ...] = ()

    @classmethod
    def of(cls, ledger: JudgeLedger) -> JudgeUsage:
        """Return the use that a ledger counted."""
        return cls(
            judgments=ledger.usage.judgments,
            input_tokens=ledger.usage.input_tokens,
            cached_tokens=ledger.usage.cached_tokens,
            output_tokens=ledger.usage.output_tokens,
            cost_usd=ledger.usage.rounded_usd,
            # They are sorted because votes arrive in any order.
            rejections=tuple(sorted(ledger.rejections, key=str)),
        )


class RunRecord(BaseModel):
    """The time at which a result was made, and how long that took.

    Args:
        created: UTC, ISO 8601, like ``judged_from`` and ``judged_to``, the first and last judgment.
        judge_check: the judge's last check on the labelled set.
        content_sha256: of the result without this field; it shows accidents and is not a signature.
    """

    model_config = ConfigDict(frozen=True)

    version: str | None = None
    tree_format: int | None = None
    created: str | None = None
    seconds: float | None = None
    judge_requests: int | None = None
    judge_retries: int | None = None
    judged_from: str | None = None
    judged_to: str | None = None
    judge_check: CheckRecord | None = None
    content_sha256: str | None = None

    def as_json(self) -> JsonObject:
        """Return the fields as they are written.

        The judge that was checked is in the provenance.
        """
        written = self.model_dump(
            mode="json", exclude={"content_sha256": True, "judge_check": {"judge"}}
        )
        if self.judge_check is None:
            del written["judge_check"]
        return written


class ResultMaking(BaseModel):
    """How a result was made, as it is written after the script's summary, in this order.

    Args:
        time_seconds: the agent's time.
        quotes: how many quoted passages were found; ``ResultFile.completed`` counts them.
        doubts: reasons why the next run judges the answer again.
        ignored_arguments: keywords of the script that this toolkit does not know.
        script_faults: the script's mistakes that may have cost the answer points, one line each.
        answer_flags: passages of the answer that seem to address the judge.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent_name: str
    answer_name: str
    judge_model: str
    task_id: str
    time_seconds: float | None
    provenance: Provenance
    judge_usage: JudgeUsage
    quotes: dict[QuoteMatch, int] = {}
    doubts: tuple[str, ...]
    ignored_arguments: tuple[str, ...]
    script_faults: tuple[str, ...]
    answer_flags: tuple[Flag, ...]
    run: RunRecord


class ResultPart(BaseModel):
    """A part of a script's summary: a rubric tree, extractions and records."""

    model_config = ConfigDict(frozen=True)

    verification_tree: object = None
    info: object = None


class ResultFile(BaseModel):
    """One result. From files of other tools and earlier versions, each sound field is read.

    Args:
        final_score: ``None`` where the file has no score from 0 to 1.
        undecided_leaves: leaves that the script never judged.
        script_faults: mistakes of the script, with its line.
        eval_breakdown: what the script returned, mostly one part; items that are not objects stay
            as they are.
        stated_provenance: the file's own words on what the result was made from.
    """

    model_config = ConfigDict(frozen=True)

    agent_name: str | None = None
    answer_name: str | None = None
    task_id: str | None = None
    final_score: WrittenScore | None = None
    judge_model: str | None = None
    extract_model: str | None = None
    undecided_leaves: tuple[str, ...] = ()
    extractions: tuple[ExtractionRecord, ...] = ()
    time_seconds: Seconds | None = None
    judge_usage: JudgeUsage | None = None
    doubts: tuple[str, ...] = ()
    script_faults: tuple[str, ...] = ()
    answer_flags: tuple[Flag, ...] = ()
    run: RunRecord = RunRecord()
    eval_breakdown: tuple[
        Annotated[ResultPart | object, Field(union_mode="left_to_right")], ...
    ] = ()
    stated_provenance: object = Field(default=None, alias="provenance")
    _document: JsonObject = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, document: JsonObject) -> ResultFile:
        """Return the result that a file's JSON describes."""
        result = read_leniently(cls, document)
        result._document = document
        return result

    def completed(self, making: ResultMaking) -> ResultFile:
        """Return the result of this summary of a script, complete with its checksum."""
        names = {"agent_name": making.agent_name, "answer_name": making.answer_name}
        counted = making.model_copy(update={"quotes": self.quote_counts()})
        recorded = counted.model_dump(mode="json", exclude={*names, "judge_model", "run"})
        written = {
            # First in the file; a script that leaves them out has "unknown_answer"
            # (eval-scripts.md).
            **names,
            "judge_model": making.judge_model,
            **self.document,
            **names,
            **recorded,
            "run": making.run.as_json(),
        }
        return ResultFile.of(with_checksum(written))

    @property
    def document(self) -> JsonObject:
        """Return the file's JSON, with the fields that scripts and other tools added."""
        return self._document

    @cached_property
    def provenance(self) -> Provenance | None:
        """Return what the result was made from.

        ``None`` where it does not say, or not everything.
        """
        try:
            return Provenance.model_validate(self.stated_provenance)
        except ValidationError:
            return None

    @property
    def cost_usd(self) -> float | None:
        """Return what the judge's replies cost, ``None`` where that is unknown."""
        return None if self.judge_usage is None else self.judge_usage.cost_usd

    # The rubric

    @cached_property
    def trees(self) -> tuple[WrittenNode, ...]:
        """Return the rubric trees; a script may return none, or several."""
        return tuple(filter(None, map(read_tree, self.tree_documents())))

    def tree_documents(self) -> list[JsonObject]:
        """Return the rubric trees as JSON, as the script gave them."""
        return mappings([part.verification_tree for part in self._parts()])

    @cached_property
    def sound_tree(self) -> WrittenNode | None:
        """Return the rubric tree if there is exactly one, and a score follows from it."""
        if len(self.eval_breakdown) != 1 or len(self.trees) != 1:
            return None
        tree = self.trees[0]
        if all(node.is_sound for node in tree.walk()):
            return tree
        return None

    def leaves(self) -> Iterator[WrittenNode]:
        """Yield the leaves of the rubric trees, in rubric order."""
        return (leaf for tree in self.trees for leaf in tree.leaves())

    def info(self) -> list[Any]:
        """Return what the script extracted and recorded, part by part, as the script gave it."""
        return [part.info for part in self._parts()]

    def info_entries(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and values of ``info``, in the order of the file."""
        for entries in self.info():
            for entry in mappings(entries):
                yield from entry.items()

    def _parts(self) -> list[ResultPart]:
        return [part for part in self.eval_breakdown if isinstance(part, ResultPart)]

    # Scores

    @cached_property
    def score_by_tree(self) -> float | None:
        """Return the score that follows from the leaves, ``None`` where there is no sound tree."""
        root = self.sound_tree
        if root is None:
            return None
        return aggregate(root)[id(root)].score

    @property
    def other_score_by_tree(self) -> float | None:
        """Return the score from the leaves if it differs from the result's own score."""
        score, by_tree = self.final_score, self.score_by_tree
        if by_tree is None or score is None:
            return None
        return None if math.isclose(score, by_tree, rel_tol=0.0, abs_tol=_TOLERANCE) else by_tree

    # Notes for readers of the score

    def refused_pages(self) -> tuple[str, ...]:
        """Return the pages that were not captured because their addresses are private."""
        return () if self.provenance is None else self.provenance.refused_pages

    def refused_downloads(self) -> tuple[str, ...]:
        """Return the files that the script did not get because their addresses are private."""
        return () if self.provenance is None else self.provenance.refused_downloads

    def judged_pages(self) -> list[str]:
        """Return the addresses of the pages that the result was made from."""
        return [] if self.provenance is None else list(self.provenance.pages)

    def unread_pages(self) -> list[str]:
        """Return the page of each extraction that is empty because its page is unavailable."""
        return [str(record.url) for record in self.extractions if record.unavailable]

    def quote_counts(self) -> dict[QuoteMatch, int]:
        """Return how many quoted passages were found, approximately found, and not found."""
        quotes = [vote.quote for vote in self._votes()]
        counts = Counter(quote.match for quote in quotes if quote is not None)
        return {match: counts[match] for match in QUOTE_MATCHES}

    def _votes(self) -> Iterator[Vote]:
        for leaf in self.leaves():
            for votes in leaf.grounds.vote_groups():
                yield from votes

    # The checksum

    @property
    def content_sha256(self) -> str:
        """Return the digest of the document without its checksum."""
        return _digest(self._document)

    @property
    def has_checksum(self) -> bool:
        """Tell whether there is a checksum; results of other tools have none."""
        return self.run.content_sha256 is not None

    @cached_property
    def is_edited(self) -> bool:
        """Tell whether the result changed after it was written, as far as its checksum tells.

        A result that records library versions was written with a checksum: without one it was
        changed.
        """
        if self.run.content_sha256 is not None:
            return self.run.content_sha256 != self.content_sha256
        return bool(mapping(self.stated_provenance).get("versions"))

    def is_same_but_run(self, other: Self) -> bool:
        """Tell whether two results differ only in when and how fast they were made."""
        one, another = (_without_run(each.document) for each in (self, other))
        return _digest(one) == _digest(another)


def _without_run(document: JsonObject) -> JsonObject:
    """Return a document without its times."""
    inputs = mapping(mapping(document.get("provenance")).get("inputs"))
    clock = {**mapping(inputs.get("clock")), "moment": None}
    made_from = {
        **mapping(document.get("provenance")),
        "inputs": {**inputs, "clock": clock},
    }
    return {**document, "run": None, "provenance": made_from}


def with_checksum(document: JsonObject) -> JsonObject:
    """Return a result's document as it will be read from its file, with its content's checksum."""
    read: JsonObject = json.loads(json.dumps(document))
    return {**read, "run": {**read["run"], "content_sha256": _digest(read)}}


def _digest(document: JsonObject) -> str:
    content = dict(document)
    run = document.get("run")
    if isinstance(run, dict):
        content["run"] = {**run}
        content["run"].pop("content_sha256", None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
