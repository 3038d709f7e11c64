"""An agent's answers with their claims, and the judge's quality by labels of people."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2.analysis.labels import (
    Labels,
    LeafName,
    Verdicts,
    verdicts_of,
)
from mind2web2.analysis.sample_basis import NO_ANSWER, AnswerBasis
from mind2web2.results.known_answers import agent_answers
from mind2web2.results.result_file import ResultFile
from mind2web2.results.stored_results import latest_results
from mind2web2.rubric.verdicts import Evidence
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.statistics.agreement import Cells, Figures, figures_of


@dataclass(frozen=True, slots=True)
class JudgedLeaf:
    """A leaf that the judge decided, or skipped behind one that failed.

    Args:
        is_skipped: the judge was not asked, as another leaf failed.
        seen_sha256: of the claim and the pages, which is all that a label rests on.
    """

    name: LeafName
    passed: bool
    is_skipped: bool
    seen_sha256: str

    @property
    def seen(self) -> tuple[LeafName, str]:
        """Return the leaf with what a person sees of it."""
        return self.name, self.seen_sha256


@dataclass(frozen=True, slots=True)
class AuditedAnswer:
    """An answer with a score.

    Args:
        basis: what it was judged from; ``None`` where the result does not tell, ``NO_ANSWER`` where
            the agent gave none.
        root: ``None`` where the score has no single sound tree.
        leaves: those with a claim that the judge decided, or that were skipped behind a failed
            leaf.
    """

    task: str
    answer: str
    score: float
    basis: AnswerBasis | None
    root: WrittenNode | None
    leaves: tuple[JudgedLeaf, ...]

    @property
    def name(self) -> tuple[str, str]:
        """Return task and answer."""
        return self.task, self.answer


def audited_answers(
    eval_results_root: Path, agent: str, tasks: Collection[str] | None = None
) -> list[AuditedAnswer]:
    """Return an agent's scored answers with their leaves, by the newest results."""
    answers = agent_answers(eval_results_root, agent)
    contents = {
        (task, name): result.content
        for task, name, result in latest_results(eval_results_root, agent)
    }
    return [
        audited_answer(
            one.task_id,
            one.answer_name.removesuffix(".md"),
            one.score,
            contents.get(one.place, ResultFile()) if one.is_judged else None,
        )
        for one in answers
        if one.score is not None and (tasks is None or one.task_id in tasks)
    ]


def audited_answer(
    task: str, answer: str, score: float, result: ResultFile | None
) -> AuditedAnswer:
    """Return one answer with the leaves of its result; a run that failed has none."""
    if result is None:
        return AuditedAnswer(task, answer, score, NO_ANSWER, None, ())
    root = result.sound_tree
    made_from = result.provenance
    leaves: tuple[JudgedLeaf, ...] = ()
    if root is not None:
        answer_sha256 = None if made_from is None else made_from.answer_sha256
        leaves = tuple(_leaves(task, answer, root, answer_sha256))
    return AuditedAnswer(task, answer, score, AnswerBasis.of(made_from), root, leaves)


def _leaves(
    task: str, answer: str, root: WrittenNode, answer_sha256: str | None
) -> Iterator[JudgedLeaf]:
    for node in root.leaves():
        evidence = node.grounds
        is_skipped = evidence.decided_by == "prerequisite"
        if evidence.decided_by == "judge" or (is_skipped and evidence.claim):
            yield JudgedLeaf(
                LeafName(task, answer, node.id),
                passed=node.verdict.score == 1.0,
                is_skipped=is_skipped,
                seen_sha256=_seen_sha256(evidence, answer_sha256),
            )


def _seen_sha256(evidence: Evidence, answer_sha256: str | None) -> str:
    seen = json.dumps(
        [
            evidence.claim,
            evidence.additional_instruction,
            [(check.url, check.shown.sha256) for check in evidence.pages],
            # Without pages, the claim is judged by the answer.
            None if evidence.pages else answer_sha256,
        ]
    )
    return hashlib.sha256(seen.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """How far a judge agrees with a person on the leaves that both decided.

    Args:
        undecidable: leaves that the person could not decide; they count nowhere else.
        stale: labels of leaves that were judged again on another claim or page since.
    """

    labels: int
    undecidable: int
    stale: int
    figures: Figures


def judge_quality(
    answers: Sequence[AuditedAnswer], verdicts: Verdicts, labels: int
) -> JudgeQuality:
    """Compare a judge's verdicts with those of people.

    Args:
        verdicts: on leaves of these answers.
        labels: how many there are, with stale ones.
    """
    judged = {leaf.name for answer in answers for leaf in answer.leaves if not leaf.is_skipped}
    counted = len(judged & verdicts.passes.keys())
    undecidable = len(judged & verdicts.undecidable)
    stale = labels - len(verdicts.passes) - len(verdicts.undecidable)
    figures = figures_of(cells_by_task(answers, verdicts.passes))
    return JudgeQuality(counted, undecidable, stale, figures)


def judged_leaves(answers: Iterable[AuditedAnswer]) -> dict[LeafName, bool]:
    """Return the verdicts on the leaves that were judged."""
    leaves = (leaf for one in answers for leaf in one.leaves if not leaf.is_skipped)
    return {leaf.name: leaf.passed for leaf in leaves}


def cells_by_task(
    answers: Iterable[AuditedAnswer], passes: Mapping[LeafName, float]
) -> dict[str, Cells]:
    """Return the judge's verdicts beside others, on the leaves that both decided."""
    cells: dict[str, Cells] = {}
    for answer in answers:
        for leaf in answer.leaves:
            if leaf.name in passes and not leaf.is_skipped:
                cells.setdefault(answer.task, Cells()).add(leaf.passed, passes[leaf.name])
    return cells


def between_auditors(
    answers: Iterable[AuditedAnswer], first: Labels, second: Labels
) -> tuple[int, Figures]:
    """Return how many leaves two auditors have both decided, and how far they agree on them."""
    cells: dict[str, Cells] = {}
    shared = 0
    for answer in answers:
        for leaf in answer.leaves:
            labels = [
                by_leaf[leaf.seen].label for by_leaf in (first, second) if leaf.seen in by_leaf
            ]
            if len(labels) == 2 and "u" not in labels:
                shared += 1
                passes = float(labels[1] == "y")
                cells.setdefault(answer.task, Cells()).add(labels[0] == "y", passes)
    return shared, figures_of(cells)


def label_verdicts(answers: Sequence[AuditedAnswer], labels: Sequence[Labels]) -> Verdicts:
    """Return what labels of one or several auditors say of the leaves of answers."""
    seen = (leaf.seen for answer in answers for leaf in answer.leaves)
    return verdicts_of(seen, labels)
