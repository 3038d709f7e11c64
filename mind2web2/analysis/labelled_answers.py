"""An answer's score by labels of its leaves: its tree scored again, with the labels as verdicts.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mind2web2.analysis.audited import AuditedAnswer, JudgedLeaf
from mind2web2.analysis.labels import Verdicts
from mind2web2.results.skipped_leaves import skipped_behind
from mind2web2.rubric.rescoring import Rescoring
from mind2web2.rubric.verdicts import Outcome, aggregate
from mind2web2.rubric.written_tree import WrittenNode

_OUTCOMES = {True: Outcome(1.0, "passed"), False: Outcome(0.0, "failed")}
_SKIPPED = Outcome(0.0, "skipped")


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """An answer's score by labels.

    Args:
        low: with undecidable leaves as not supported, and those on which auditors are divided.
        high: with these as supported.
        if_all_wrong: the sum of what each label changes if it alone is wrong.
    """

    low: float
    high: float
    if_all_wrong: float

    @property
    def middle(self) -> float:
        """Return the score with half a verdict on leaves that are not decided."""
        return (self.low + self.high) / 2


def wanted_leaves(answer: AuditedAnswer, verdicts: Verdicts) -> list[JudgedLeaf]:
    """Return the leaves that still need a label, in rubric order.

    A leaf behind one that labels fail needs none: the rubric skips it.
    """
    if answer.root is None:
        return []
    labels = _labels(answer, verdicts, undecided=True)
    skipped = _skipped_ids(answer.root, answer, labels)
    return [
        leaf
        for leaf in answer.leaves
        if leaf.name.leaf not in labels and leaf.name.leaf not in skipped
    ]


def score_by_labels(answer: AuditedAnswer, verdicts: Verdicts) -> LabelledScore | None:
    """Return the score by labels, ``None`` where a leaf still needs one.

    An answer without a tree has no leaves, and keeps its score.
    """
    if answer.root is None:
        return LabelledScore(answer.score, answer.score, 0.0)
    if wanted_leaves(answer, verdicts):
        return None
    low = _labels(answer, verdicts, undecided=False)
    high = _labels(answer, verdicts, undecided=True)
    return LabelledScore(
        _score(answer.root, answer, low),
        _score(answer.root, answer, high),
        _if_all_wrong(answer.root, answer, low),
    )


def _labels(answer: AuditedAnswer, verdicts: Verdicts, *, undecided: bool) -> dict[str, bool]:
    """Return the labels by leaf, with one verdict on all leaves that are not decided."""
    labels = {}
    for leaf in answer.leaves:
        passes = verdicts.passes.get(leaf.name)
        if passes in (0.0, 1.0):
            labels[leaf.name.leaf] = passes == 1.0
        elif passes is not None or leaf.name in verdicts.undecidable:
            labels[leaf.name.leaf] = undecided
    return labels


def _skipped_ids(root: WrittenNode, answer: AuditedAnswer, labels: Mapping[str, bool]) -> set[str]:
    """Return the leaves that the rubric skips by these labels.

    The verdicts that no label is about decide as well.
    """
    about_claims = {leaf.name.leaf for leaf in answer.leaves}
    leaves = list(root.leaves())
    failing = set()
    for leaf in leaves:
        if leaf.id in about_claims:
            fails = not labels.get(leaf.id, True)
        else:
            fails = leaf.verdict.blocks
        if fails:
            failing.add(id(leaf))
    skipped = skipped_behind(root, leaves, failing)
    return {leaf.id for leaf in leaves if id(leaf) in skipped}


def _score(root: WrittenNode, answer: AuditedAnswer, labels: Mapping[str, bool]) -> float:
    skipped = _skipped_ids(root, answer, labels)
    outcomes = _outcomes(root, labels)
    for leaf in root.leaves():
        if leaf.id in skipped:
            outcomes[id(leaf)] = _SKIPPED
    return aggregate(root, outcomes)[id(root)].score


def _outcomes(root: WrittenNode, labels: Mapping[str, bool]) -> dict[int, Outcome]:
    return {id(leaf): _OUTCOMES[labels[leaf.id]] for leaf in root.leaves() if leaf.id in labels}


def _if_all_wrong(root: WrittenNode, answer: AuditedAnswer, labels: Mapping[str, bool]) -> float:
    # Leaves behind a failed gate keep the judge's verdict, which counts where the gate passes.
    outcomes = _outcomes(root, labels)
    rescoring = Rescoring(root, outcomes)
    score = rescoring.score
    skipped = _skipped_ids(root, answer, labels)
    change = 0.0
    for leaf in root.leaves():
        if leaf.id in labels and leaf.id not in skipped:
            other = _OUTCOMES[not labels[leaf.id]]
            change += rescoring.score_with({id(leaf): other}) - score
    return change
