"""An agent's judged leaves: a random sample of them for people, and the judge's quality by their labels."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2.rubric.verdicts import Evidence
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.claim_facts import claim_facts
from mind2web2.runs.known_answers import agent_answers
from mind2web2.runs.labels import (
    LabelFile,
    Labels,
    LeafName,
    Verdicts,
    verdicts_of,
)
from mind2web2.runs.provenance import Premises
from mind2web2.runs.result_file import ResultFile
from mind2web2.runs.results import latest_results
from mind2web2.statistics.agreement import Cells, Figures, figures_of

# Verdict, weakness, and whether the leaf is a gate, as far as labels of all such leaves exist.
Stratum = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class JudgedLeaf:
    """A leaf that the judge decided, or skipped behind one that failed.

    Args:
        is_weak: the evidence is too weak to rely on the verdict, as for the bounds of a score.
        is_gate: it is critical: its failure takes more than its own part of the score.
        is_skipped: the judge was not asked, as another leaf failed.
        seen_sha256: of the claim and the pages, which is all that a label rests on.
    """

    name: LeafName
    passed: bool
    is_weak: bool
    is_gate: bool
    is_skipped: bool
    seen_sha256: str

    @property
    def stratum(self) -> Stratum:
        """Return the leaf's stratum of the sample."""
        return self.passed, self.is_weak, self.is_gate

    @property
    def seen(self) -> tuple[LeafName, str]:
        """Return the leaf with what a person sees of it."""
        return self.name, self.seen_sha256


@dataclass(frozen=True, slots=True)
class AuditedAnswer:
    """An answer with a score.

    Args:
        premises: what it was judged by; ``None`` where the result does not tell.
        root: ``None`` where the score has no single sound tree.
        leaves: those that the judge decided.
        skipped: those with a claim that were skipped behind a failed leaf.
    """

    task: str
    answer: str
    score: float
    premises: Premises | None
    root: WrittenNode | None
    leaves: tuple[JudgedLeaf, ...]
    skipped: tuple[JudgedLeaf, ...]


def audited_answers(
    eval_results_root: Path, agent: str, tasks: Collection[str] | None = None
) -> list[AuditedAnswer]:
    """Return an agent's scored answers with their leaves, by the newest results."""
    answers = agent_answers(eval_results_root, agent)
    contents = {
        (task, name): found.content
        for task, name, found in latest_results(eval_results_root, agent)
    }
    return [
        audited_answer(
            one.task_id,
            one.answer_name.removesuffix(".md"),
            one.score,
            contents.get((one.task_id, one.answer_name), ResultFile()),
        )
        for one in answers
        if one.score is not None and (tasks is None or one.task_id in tasks)
    ]


def audited_answer(
    task: str, answer: str, score: float, result: ResultFile
) -> AuditedAnswer:
    """Return one answer with the leaves of its result."""
    root = result.sound_tree
    made_from = result.provenance
    premises = None if made_from is None else made_from.premises
    answer_sha256 = None if premises is None else premises.answer_sha256
    if root is not None:
        found = list(_leaves(task, answer, root, answer_sha256))
    else:
        found = []
    return AuditedAnswer(
        task,
        answer,
        score,
        premises,
        root,
        tuple(leaf for leaf in found if not leaf.is_skipped),
        tuple(leaf for leaf in found if leaf.is_skipped),
    )


def _leaves(
    task: str, answer: str, root: WrittenNode, answer_sha256: str | None
) -> Iterator[JudgedLeaf]:
    for node in root.leaves():
        evidence = node.evidence
        if evidence is None:
            continue
        is_skipped = evidence.decided_by == "prerequisite"
        if evidence.decided_by == "judge" or (is_skipped and evidence.claim):
            yield JudgedLeaf(
                LeafName(task, answer, node.id),
                passed=node.verdict.score == 1.0,
                is_weak=claim_facts(node).is_weak,
                is_gate=node.critical,
                is_skipped=is_skipped,
                seen_sha256=_seen_sha256(evidence, answer_sha256),
            )


def _seen_sha256(evidence: Evidence, answer_sha256: str | None) -> str:
    seen = json.dumps(
        [
            evidence.claim,
            evidence.additional_instruction,
            [(check.url, check.page and check.page.sha256) for check in evidence.pages],
            # Without pages, the claim is judged by the answer.
            None if evidence.pages else answer_sha256,
        ]
    )
    return hashlib.sha256(seen.encode()).hexdigest()


def sample(leaves: Sequence[JudgedLeaf], size: int, seed: int) -> list[JudgedLeaf]:
    """Return a random sample in an order of which every beginning is one.

    Strata are verdict, weakness and gate: half of the sample is shared in proportion to their sizes, half
    equally. Within each, leaves are a simple random sample; a larger one with the same seed adds to it.
    """
    strata: dict[Stratum, list[JudgedLeaf]] = defaultdict(list)
    for leaf in leaves:
        strata[leaf.stratum].append(leaf)
    sizes = _allocated({name: len(found) for name, found in strata.items()}, size)
    placed: list[tuple[float, JudgedLeaf]] = []
    for name in sorted(strata):
        chance = random.Random(f"{seed} {name}")  # a sample, not a secret
        shuffled = sorted(strata[name], key=lambda leaf: leaf.name)
        chance.shuffle(shuffled)
        # Strata alternate, so that an audit that stops early has labels of all.
        placed += [
            ((number + chance.random()) / sizes[name], leaf)
            for number, leaf in enumerate(shuffled[: sizes[name]])
        ]
    return [
        leaf for _, leaf in sorted(placed, key=lambda entry: (entry[0], entry[1].name))
    ]


def _allocated(counts: Mapping[Stratum, int], size: int) -> dict[Stratum, int]:
    total = sum(counts.values())
    if size >= total:
        return dict(counts)
    wanted = {
        name: min(count, max(1, round(size * (count / total + 1 / len(counts)) / 2)))
        for name, count in counts.items()
    }
    # Rounding, and strata that have fewer: the largest takes the rest.
    largest = max(counts, key=lambda name: counts[name] - wanted[name])
    wanted[largest] = max(
        1, min(counts[largest], wanted[largest] + size - sum(wanted.values()))
    )
    return wanted


def labelled_strata(
    leaves: Iterable[JudgedLeaf], verdicts: Verdicts
) -> Callable[[JudgedLeaf], Stratum]:
    """Return the stratum of each leaf as far as it has labels.

    Where one of a verdict's strata has none, the leaves with this verdict are one stratum: an audit that
    stopped early may lack the small ones.
    """
    counts: dict[Stratum, int] = defaultdict(int)
    for leaf in leaves:
        counts[leaf.stratum] += leaf.name in verdicts.passes
    lacking = {name[0] for name, labels in counts.items() if not labels}
    return lambda leaf: (leaf.passed,) if leaf.passed in lacking else leaf.stratum


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """How far a judge agrees with a person; shares are of all judged leaves, whatever the sample's strata.

    Args:
        undecidable: leaves that the person could not decide; they count nowhere else.
        stale: labels of leaves that were judged again on another claim or page since.
    """

    labels: int
    undecidable: int
    stale: int
    figures: Figures


def judge_quality(
    answers: Iterable[AuditedAnswer], verdicts: Verdicts, labels: int = 0
) -> JudgeQuality:
    """Compare a judge's verdicts with those of people.

    Args:
        labels: how many there are, with stale ones.
    """
    leaves = [leaf for answer in answers for leaf in answer.leaves]
    cells, counted = judged_cells(leaves, verdicts)
    undecidable = sum(leaf.name in verdicts.undecidable for leaf in leaves)
    of_skipped = sum(
        leaf.name in verdicts.passes or leaf.name in verdicts.undecidable
        for answer in answers
        for leaf in answer.skipped
    )
    stale = max(0, labels - counted - undecidable - of_skipped)
    return JudgeQuality(counted, undecidable, stale, figures_of(cells))


def judged_cells(
    leaves: Sequence[JudgedLeaf], verdicts: Verdicts
) -> tuple[dict[str, Cells], int]:
    """Return the judge's and the person's verdicts by task, as all leaves would have them, and the labels."""
    stratum_of = labelled_strata(leaves, verdicts)
    totals: dict[Stratum, int] = defaultdict(int)
    drawn: dict[Stratum, int] = defaultdict(int)
    for leaf in leaves:
        totals[stratum_of(leaf)] += 1
        drawn[stratum_of(leaf)] += leaf.name in verdicts.passes
    cells: dict[str, Cells] = {}
    for leaf in leaves:
        passes = verdicts.passes.get(leaf.name)
        if passes is not None:
            weight = totals[stratum_of(leaf)] / drawn[stratum_of(leaf)]
            cells.setdefault(leaf.name.task, Cells()).add(leaf.passed, passes, weight)
    return cells, sum(drawn.values())


def between_auditors(
    answers: Iterable[AuditedAnswer], one: LabelFile, other: LabelFile
) -> tuple[int, Figures]:
    """Return how many leaves two auditors have both decided, and how far they agree on them."""
    first, second = one.blind(), other.blind()
    cells: dict[str, Cells] = {}
    shared = 0
    for answer in answers:
        for leaf in (*answer.leaves, *answer.skipped):
            given = [
                own[leaf.seen].label for own in (first, second) if leaf.seen in own
            ]
            if len(given) == 2 and "u" not in given:
                shared += 1
                passes = float(given[1] == "y")
                cells.setdefault(answer.task, Cells()).add(given[0] == "y", passes, 1.0)
    return shared, figures_of(cells)


def label_verdicts(
    answers: Sequence[AuditedAnswer], labels: Sequence[Labels]
) -> Verdicts:
    """Return what labels of one or several auditors say of the leaves of answers."""
    seen = (
        leaf.seen for answer in answers for leaf in (*answer.leaves, *answer.skipped)
    )
    return verdicts_of(seen, labels)
