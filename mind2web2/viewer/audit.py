"""Human labels for judged leaves: a blind sample, an auditor's session, and the judge's quality by labels."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.rubric.verdicts import Evidence, Outcome, aggregate
from mind2web2.runs.reader import WrittenNode, leaf_facts, leaves_of, written_tree
from mind2web2.statistics.paired import (
    Estimate,
    Labelled,
    Pair,
    agreement_share,
    cohen_kappa,
    gwet_ac1,
    ppi_mean,
    share,
)
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.json_fields import mapping
from mind2web2.viewer.catalog import AnswerKey, Catalog, Json, NoSuchResultError, tree_rows
from mind2web2.viewer.server import JsonResponse, json_route

Verdict = Literal["y", "n", "u"]
_MAX_NOTE_CHARS = 2000
# Of one answer, each doubling the scores to compute; further ones are corrected without being scaled up.
_MOST_UNCERTAIN = 8


@dataclass(frozen=True, slots=True)
class JudgedLeaf:
    """A leaf that the judge decided.

    Args:
        is_weak: the evidence is too weak to rely on the verdict, as for the bounds of a score.
        seen_sha256: of the claim and the pages, which is all that a label rests on.
        weight: how many judged leaves it stands for in a sample.
    """

    place: AnswerKey
    leaf: str
    supported: bool
    is_weak: bool
    seen_sha256: str
    weight: float = 1.0

    @property
    def name(self) -> tuple[AnswerKey, str]:
        """Return the leaf's identity."""
        return self.place, self.leaf

    @property
    def stratum(self) -> tuple[bool, bool]:
        """Return the leaf's stratum of the sample: the verdict, and whether something speaks against it."""
        return self.supported, self.is_weak


class Label(BaseModel):
    """A person's verdict on a leaf: ``y`` the sources support the claim, ``n`` not, ``u`` undecidable."""

    model_config = ConfigDict(frozen=True)

    agent: str
    task: str
    answer: str
    leaf: str
    label: Verdict
    note: str = ""
    seconds: float = 0.0
    seen_sha256: str
    weight: float = 1.0
    created: str

    @property
    def name(self) -> tuple[AnswerKey, str]:
        """Return the leaf, as ``JudgedLeaf.name`` does."""
        return AnswerKey(self.agent, self.task, self.answer), self.leaf


class LabelFile:
    """One auditor's labels, ``audits/<agent>/<auditor>.jsonl``; the first of a leaf counts: it was blind."""

    def __init__(self, root: Path, agent: str, auditor: str) -> None:
        self.path = root / agent / f"{auditor}.jsonl"

    def append(self, leaf: JudgedLeaf, label: Verdict, note: str, seconds: float) -> Label:
        """Write a label to the disk and return it. Raises ResultWriteError: it cannot be written."""
        made = Label(
            **asdict(leaf.place),
            leaf=leaf.leaf,
            label=label,
            note=note,
            seconds=round(seconds, 1),
            seen_sha256=leaf.seen_sha256,
            weight=leaf.weight,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        line = made.model_dump_json().encode("utf-8", "backslashreplace") + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                # A line that a crash cut short must not swallow this one.
                if file.tell() and not self._ends_with_line():
                    line = b"\n" + line
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ResultWriteError(f"cannot write to {self.path}: {error.strerror or error}") from error
        return made

    def labels(self) -> dict[tuple[AnswerKey, str], Label]:
        """Return the labels by leaf; lines that a crash has cut short are left out."""
        found: dict[tuple[AnswerKey, str], Label] = {}
        if self.path.is_file():
            for line in read_regular_file(self.path).splitlines():
                try:
                    label = Label.model_validate_json(line)
                except ValidationError:
                    continue
                first = found.get(label.name)
                if first is None or first.seen_sha256 != label.seen_sha256:
                    found[label.name] = label
        return found

    def _ends_with_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def auditors(root: Path, agent: str) -> list[str]:
    """Return who has labelled leaves of an agent."""
    return sorted(path.stem for path in (root / agent).glob("*.jsonl"))


def judged_leaves(catalog: Catalog, agent: str) -> list[JudgedLeaf]:
    """Return all leaves of an agent's newest results that votes of the judge decided."""
    found: list[JudgedLeaf] = []
    for answer in catalog.answers(agent):
        key = AnswerKey.of(agent, answer)
        result = catalog.result(key)
        if result is not None and answer.score is not None:
            found += _leaves_of(key, result.content)
    return found


def _leaves_of(key: AnswerKey, result: Mapping[str, Any]) -> Iterator[JudgedLeaf]:
    answer_sha256 = mapping(result.get("provenance")).get("answer_sha256")
    for leaf in leaves_of(result):
        try:
            evidence = Evidence.model_validate(leaf.get("evidence"))
        except ValidationError:
            continue
        if evidence.decided_by != "judge":
            continue
        seen = json.dumps(
            [
                evidence.claim,
                evidence.additional_instruction,
                [(check.url, check.page and check.page.sha256) for check in evidence.pages],
                # Without pages, the claim was judged by the answer.
                None if evidence.pages else answer_sha256,
            ]
        )
        # The verdict that a sequence put in its place is not the judge's.
        verdict = leaf.get("superseded") or leaf
        yield JudgedLeaf(
            key,
            str(leaf.get("id")),
            supported=verdict.get("score") == 1.0,
            is_weak=leaf_facts(leaf).is_weak,
            seen_sha256=hashlib.sha256(seen.encode()).hexdigest(),
        )


def sample(leaves: Sequence[JudgedLeaf], size: int, seed: int) -> list[JudgedLeaf]:
    """Return a random sample, each leaf with the number of leaves that it stands for, in random order.

    Strata are verdict and weakness: half of the sample is shared in proportion to their sizes, half equally.
    Within each, leaves are taken at equal steps from a list sorted by task, so that tasks have their shares.
    """
    strata: dict[tuple[bool, bool], list[JudgedLeaf]] = defaultdict(list)
    for leaf in leaves:
        strata[leaf.stratum].append(leaf)
    chance = random.Random(seed)  # a sample, not a secret
    chosen: list[JudgedLeaf] = []
    sizes = _allocated({name: len(found) for name, found in strata.items()}, size)
    for name in sorted(strata):
        found = [(leaf.place.task, chance.random(), leaf) for leaf in strata[name]]
        ordered = [leaf for _, _, leaf in sorted(found, key=lambda entry: entry[:2])]
        step = len(ordered) / sizes[name]
        start = chance.random() * step
        picked = [ordered[int(start + step * number)] for number in range(sizes[name])]
        chosen += [replace(leaf, weight=step) for leaf in picked]
    chance.shuffle(chosen)
    return chosen


def _allocated(counts: Mapping[tuple[bool, bool], int], size: int) -> dict[tuple[bool, bool], int]:
    total = sum(counts.values())
    if size >= total:
        return dict(counts)
    wanted = {
        name: min(count, max(1, round(size * (count / total + 1 / len(counts)) / 2)))
        for name, count in counts.items()
    }
    # Rounding, and strata that have fewer: the largest takes the rest.
    largest = max(counts, key=lambda name: counts[name] - wanted[name])
    wanted[largest] = max(1, min(counts[largest], wanted[largest] + size - sum(wanted.values())))
    return wanted


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """How far a judge agrees with a person; shares are of all judged leaves, by the weights of the sample.

    Args:
        undecidable: leaves that the person could not decide; they count nowhere else.
        stale: labels of leaves that were judged again on another claim or page since.
        wrong_passes: share of the leaves that the judge passed and the person did not support.
        wrong_failures: share of the leaves that the judge failed and the person supported.
    """

    labels: int
    undecidable: int
    stale: int
    agreement: Estimate
    kappa: Estimate
    ac1: Estimate
    wrong_passes: Estimate
    wrong_failures: Estimate


def judge_quality(
    leaves: Iterable[JudgedLeaf], labels: Mapping[tuple[AnswerKey, str], Label]
) -> JudgeQuality:
    """Compare a judge's verdicts with a person's labels."""
    known = {leaf.name: leaf for leaf in leaves}
    current = {name: label for name, label in labels.items() if _is_current(known.get(name), label)}
    decided = {name: label for name, label in current.items() if label.label != "u"}
    pairs = [Pair(known[name].supported, label.label == "y", label.weight) for name, label in decided.items()]
    passed = [pair for pair in pairs if pair.one]
    failed = [pair for pair in pairs if not pair.one]
    return JudgeQuality(
        labels=len(decided),
        undecidable=len(current) - len(decided),
        stale=len(labels) - len(current),
        agreement=agreement_share(pairs),
        kappa=cohen_kappa(pairs),
        ac1=gwet_ac1(pairs),
        wrong_passes=share([not pair.other for pair in passed], [pair.weight for pair in passed]),
        wrong_failures=share([pair.other for pair in failed], [pair.weight for pair in failed]),
    )


def between_auditors(
    one: Mapping[tuple[AnswerKey, str], Label], other: Mapping[tuple[AnswerKey, str], Label]
) -> tuple[int, Estimate, Estimate, Estimate]:
    """Return how many leaves two auditors have both decided, their agreement, kappa and AC1."""
    pairs = [
        Pair(label.label == "y", other[name].label == "y", label.weight)
        for name, label in one.items()
        if label.label != "u"
        and name in other
        and other[name].label != "u"
        and label.seen_sha256 == other[name].seen_sha256
    ]
    return len(pairs), agreement_share(pairs), cohen_kappa(pairs), gwet_ac1(pairs)


@dataclass(frozen=True, slots=True)
class CorrectedScore:
    """An agent's partial completion by the judge, and as human labels correct it.

    Args:
        raw: the mean score over all answers.
        corrected: PPI++ on answer scores recomputed with the labels.
        power: the weight of the judge's scores in it, from 0 to 1.
        answers: how many have labels.
    """

    raw: float
    corrected: Estimate
    power: float
    answers: int


def corrected_score(
    catalog: Catalog,
    agent: str,
    leaves: Sequence[JudgedLeaf],
    labels: Mapping[tuple[AnswerKey, str], Label],
) -> CorrectedScore | None:
    """Return the corrected score, ``None`` where no answer has a score.

    An answer's score by human labels is that of its rubric tree with all of its labels. Where only some of
    its judged leaves have labels, each change is scaled up by the chance of the sample to have it. An
    answer's weight follows from the chance of the sample to have any of its leaves.
    """
    of_answer: dict[AnswerKey, list[JudgedLeaf]] = defaultdict(list)
    for leaf in leaves:
        of_answer[leaf.place].append(leaf)
    known = {leaf.name: leaf for leaf in leaves}
    chances: dict[tuple[bool, bool], float] = defaultdict(float)
    for name, label in labels.items():
        if name in known:
            chances[known[name].stratum] = max(chances[known[name].stratum], 1 / max(1.0, label.weight))
    labelled: list[Labelled] = []
    labelled_tasks: list[str] = []
    scores: list[float] = []
    tasks: list[str] = []
    for answer in catalog.answers(agent):
        if answer.score is None:
            continue
        scores.append(answer.score)
        tasks.append(answer.task_id)
        key = AnswerKey.of(agent, answer)
        own = _decided(of_answer[key], labels)
        result = catalog.result(key) if own else None
        root = None if result is None else written_tree(result.content)
        if root is not None:
            drawn = max(1e-9, 1 - math.prod(1 - chances[leaf.stratum] for leaf in of_answer[key]))
            wrong = {leaf: supported for leaf, supported in own.items() if supported != leaf.supported}
            change = _change(root, wrong, {leaf: chances[leaf.stratum] for leaf in wrong})
            # Beyond 0 and 1 where few of an answer's leaves have labels: cut off, their mean would be wrong.
            labelled_tasks.append(answer.task_id)
            labelled.append(Labelled(answer.score + drawn * change, answer.score, 1 / drawn))
    if not scores:
        return None
    corrected, power = ppi_mean(labelled, scores, (labelled_tasks, tasks))
    return CorrectedScore(fmean(scores), corrected, power, len(labelled))


def _decided(
    leaves: Iterable[JudgedLeaf], labels: Mapping[tuple[AnswerKey, str], Label]
) -> dict[JudgedLeaf, bool]:
    """Return the leaves that have a current label other than undecidable, with the person's verdicts."""
    return {
        leaf: label.label == "y"
        for leaf in leaves
        if (label := labels.get(leaf.name)) is not None and label.label != "u" and _is_current(leaf, label)
    }


def _change(
    root: WrittenNode, verdicts: Mapping[JudgedLeaf, bool], chances: Mapping[JudgedLeaf, float]
) -> float:
    """Return the estimated change of an answer's score by all wrong verdicts, from those that the sample has.

    Horvitz and Thompson (1952) for each leaf: a wrong verdict counts by one over its chance to be in the
    sample. A score is linear in each leaf's verdict, so that the scores with each part of the leaves
    corrected add up to an estimate without bias, also where a gate makes leaves depend on each other.
    """
    change = -aggregate(root)[id(root)].score
    uncertain = [leaf for leaf in verdicts if chances[leaf] < 1][:_MOST_UNCERTAIN]
    for corrected in product((True, False), repeat=len(uncertain)):
        shares = [1 / chances[leaf] for leaf in uncertain]
        weight = math.prod(
            share if is_corrected else 1 - share
            for share, is_corrected in zip(shares, corrected, strict=True)
        )
        left = {leaf for leaf, is_corrected in zip(uncertain, corrected, strict=True) if not is_corrected}
        found = {leaf.leaf: supported for leaf, supported in verdicts.items() if leaf not in left}
        change += weight * _score_with(root, found)
    return change


def _score_with(root: WrittenNode, verdicts: Mapping[str, bool]) -> float:
    """Return the score of a tree with other verdicts on some leaves."""
    outcomes = {
        id(node): Outcome(1.0, "passed") if verdicts[node.id] else Outcome(0.0, "failed")
        for node in root.walk()
        if not node.children and node.id in verdicts
    }
    return aggregate(root, outcomes)[id(root)].score


def _is_current(leaf: JudgedLeaf | None, label: Label | None) -> bool:
    return leaf is not None and label is not None and leaf.seen_sha256 == label.seen_sha256


# An auditor's session in the viewer


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Which leaves an auditor labels.

    Args:
        seed: auditors with the same seed and size label the same leaves.
    """

    root: Path
    agent: str
    auditor: str
    size: int
    seed: int


class NewLabel(BaseModel):
    """A label as the front end sends it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=0)
    label: Verdict
    note: str = Field(default="", max_length=_MAX_NOTE_CHARS)
    seconds: float = Field(default=0.0, ge=0, le=1e7)


class AuditSession:
    """The sample of one auditor. Raises UsageError: no leaf was decided by votes of the judge."""

    def __init__(self, catalog: Catalog, settings: AuditSettings) -> None:
        self._catalog = catalog
        self._settings = settings
        self._leaves = sample(judged_leaves(catalog, settings.agent), settings.size, settings.seed)
        if not self._leaves:
            raise UsageError(f"agent {settings.agent} has no leaves that a judge's votes decided")
        self._file = LabelFile(settings.root, settings.agent, settings.auditor)

    def state(self) -> Json:
        """Return how far the auditor has come; labels, not verdicts."""
        labels = self._file.labels()
        given = [labels.get(leaf.name) for leaf in self._leaves]
        return {
            "agent": self._settings.agent,
            "auditor": self._settings.auditor,
            "labels": [None if label is None else label.label for label in given],
        }

    def item(self, number: int) -> Json:
        """Return the claim and the addresses of the pages of one leaf, without the judge's verdict."""
        leaf, row = self._row(number)
        evidence = row["evidence"]
        answer = self._catalog.answer(leaf.place)
        task = next((tree[0].get("desc", "") for tree in answer["trees"] if tree), "")
        pages = [
            {"url": check["url"], "sha256": check["page"].get("sha256")}
            for check in evidence.get("pages") or ()
            if check.get("page")
        ]
        return {
            "number": number,
            "agent": leaf.place.agent,
            "task": leaf.place.task,
            "answer": leaf.place.answer,
            "task_text": task,
            "claim": evidence.get("claim"),
            "instruction": evidence.get("additional_instruction"),
            "pages": pages,
            # Of a claim that the judge saw no page for, the answer is all there is.
            "markdown": [] if pages else answer["markdown"],
        }

    def label(self, made: NewLabel) -> Json:
        """Keep a label, and return the judge's verdict."""
        leaf, row = self._row(made.number)
        self._file.append(leaf, made.label, made.note, made.seconds)
        return {"supported": leaf.supported, "leaf": leaf.leaf, "evidence": row["evidence"]}

    def routes(self) -> list[Route]:
        """Return the routes of the session."""

        def item(request: Request) -> Json:
            number = request.query_params.get("number", "")
            return self.item(int(number) if number.isdecimal() else -1)

        async def label(request: Request) -> Response:
            try:
                made = NewLabel.model_validate_json(await request.body())
            except ValidationError as error:
                return JsonResponse({"error": str(error.errors()[0]["msg"])}, 400)
            return JsonResponse(await run_in_threadpool(self.label, made))

        return [
            json_route("/api/audit", lambda _: self.state()),
            json_route("/api/audit-item", item),
            Route("/api/audit-label", label, methods=["POST"]),
        ]

    def _row(self, number: int) -> tuple[JudgedLeaf, Mapping[str, Any]]:
        if not 0 <= number < len(self._leaves):
            raise NoSuchResultError(f"the sample has no leaf {number}")
        leaf = self._leaves[number]
        result = self._catalog.result(leaf.place)
        content = {} if result is None else result.content
        for part in content.get("eval_breakdown") or ():
            for row in tree_rows(part.get("verification_tree") or {}):
                if row.get("id") == leaf.leaf and row["is_leaf"]:
                    return leaf, row
        raise NoSuchResultError(
            f"leaf {leaf.leaf} is gone: the answer was judged again; start the audit again"
        )
