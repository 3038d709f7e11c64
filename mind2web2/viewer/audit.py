"""An auditor's session in the viewer: a blind sample of judged leaves, and a second look at disagreements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mind2web2.errors import UsageError
from mind2web2.rubric.verdicts import Evidence
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.audited import AuditedAnswer, JudgedLeaf, audited_answers, sample
from mind2web2.runs.corrected import behind_wrong_gates
from mind2web2.runs.labels import LabelFile, LeafSample, Verdict, verdicts_of
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.keys import AnswerKey, Json, NoSuchResultError
from mind2web2.viewer.markdown import markdown_tree
from mind2web2.viewer.routes import JsonResponse, json_route

_MAX_NOTE_CHARS = 2000


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Which leaves an auditor labels.

    Args:
        seed: auditors with the same seed and size label the same leaves.
        is_second: the second pass: the leaves at which the auditor's blind label and the judge differ.
    """

    root: Path
    agent: str
    auditor: str
    size: int
    seed: int
    is_second: bool = False


class NewLabel(BaseModel):
    """A label as the front end sends it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=0)
    label: Verdict
    note: str = Field(default="", max_length=_MAX_NOTE_CHARS)
    seconds: float = Field(default=0.0, ge=0, le=1e7)


class AuditSession:
    """The leaves of one auditor. Raises UsageError: there are none to label.

    To the sample come the leaves behind a gate that the auditor passes and the judge failed: the judge
    skipped them, and the corrected score depends on them.
    """

    def __init__(self, catalog: Catalog, settings: AuditSettings) -> None:
        self._catalog = catalog
        self._settings = settings
        self._file = LabelFile(settings.root, settings.agent, settings.auditor)
        tasks = {answer.task_id for answer in catalog.answers(settings.agent)}
        answers = audited_answers(
            catalog.paths.eval_results_root, settings.agent, tasks
        )
        self._answers = {(one.task, one.answer): one for one in answers}
        self._sample: LeafSample | None = None
        judged = [leaf for answer in answers for leaf in answer.leaves]
        if not judged:
            raise UsageError(
                f"agent {settings.agent} has no leaves that a judge's votes decided"
            )
        if settings.is_second:
            self._leaves = self._disagreements(judged)
            if not self._leaves:
                raise UsageError(
                    f"no blind label of {settings.auditor} differs from the judge on {settings.agent}"
                )
            return
        self._leaves = sample(judged, settings.size, settings.seed)
        self._sample = LeafSample(
            drawn_from=tuple(self._answers),
            leaves=tuple(leaf.name for leaf in self._leaves),
        )
        for leaf in list(self._leaves):
            self._add_behind(self._answer(leaf))

    def _disagreements(self, judged: list[JudgedLeaf]) -> list[JudgedLeaf]:
        blind = self._file.blind()
        labels = {leaf: blind[leaf.seen].label for leaf in judged if leaf.seen in blind}
        return [
            leaf
            for leaf, label in labels.items()
            if label != "u" and leaf.passed is not (label == "y")
        ]

    def _add_behind(self, answer: AuditedAnswer) -> None:
        seen = [leaf.seen for leaf in (*answer.leaves, *answer.skipped)]
        blind = self._file.blind()
        names = set(behind_wrong_gates(answer, verdicts_of(seen, [blind])))
        known = {leaf.name for leaf in self._leaves}
        self._leaves += [
            leaf
            for leaf in answer.skipped
            if leaf.name not in known and (leaf.name in names or leaf.seen in blind)
        ]

    def _answer(self, leaf: JudgedLeaf) -> AuditedAnswer:
        return self._answers[leaf.name.task, leaf.name.answer]

    def state(self) -> Json:
        """Return how far the auditor has come; labels, not verdicts."""
        if self._settings.is_second:
            labels = self._file.second()
        else:
            labels = self._file.blind()
        given = [labels.get(leaf.seen) for leaf in self._leaves]
        return {
            "agent": self._settings.agent,
            "auditor": self._settings.auditor,
            "is_second": self._settings.is_second,
            "labels": [None if label is None else label.label for label in given],
        }

    def item(self, number: int) -> Json:
        """Return the claim and the addresses of the pages of one leaf.

        The judge's verdict is in it in the second pass only, beside the auditor's own blind label.
        """
        leaf, root, evidence = self._judged(number)
        key = self._key(leaf)
        pages = [
            {"url": check.url, "sha256": check.page.sha256}
            for check in evidence.pages
            if check.page is not None
        ]
        found = {
            "number": number,
            "agent": key.agent,
            "task": key.task,
            "answer": key.answer,
            "task_text": root.desc,
            "claim": evidence.claim,
            "instruction": evidence.additional_instruction,
            "is_skipped": leaf.is_skipped,
            "pages": pages,
            # Of a claim that the judge saw no page for, the answer is all there is.
            "markdown": []
            if pages
            else markdown_tree(self._catalog.answer_text(key) or ""),
        }
        if self._settings.is_second:
            blind = self._file.blind()[leaf.seen]
            found["blind"] = {"label": blind.label, "note": blind.note}
            found["judge"] = self._revealed(leaf, evidence)
        return found

    def label(self, made: NewLabel) -> Json:
        """Keep a label, and return the judge's verdict and the number of leaves, which may have grown."""
        leaf, _, evidence = self._judged(made.number)
        if self._sample is not None:
            self._file.begin(self._sample)
        self._file.append(
            leaf.name,
            leaf.seen_sha256,
            made.label,
            note=made.note,
            seconds=made.seconds,
            is_second=self._settings.is_second,
        )
        if not self._settings.is_second:
            self._add_behind(self._answer(leaf))
        return {
            **self._revealed(leaf, evidence),
            "leaf": leaf.name.leaf,
            "leaves": len(self._leaves),
        }

    def _revealed(self, leaf: JudgedLeaf, evidence: Evidence) -> Json:
        shown = evidence.model_dump(mode="json", exclude_defaults=True)
        return {
            "supported": leaf.passed,
            "is_skipped": leaf.is_skipped,
            "evidence": shown,
        }

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

    def _key(self, leaf: JudgedLeaf) -> AnswerKey:
        return AnswerKey(self._settings.agent, leaf.name.task, leaf.name.answer)

    def _judged(self, number: int) -> tuple[JudgedLeaf, WrittenNode, Evidence]:
        """Return a leaf of the sample, the root of its tree, and its evidence."""
        if not 0 <= number < len(self._leaves):
            raise NoSuchResultError(f"the sample has no leaf {number}")
        leaf = self._leaves[number]
        result = self._catalog.result(self._key(leaf))
        for tree in () if result is None else result.content.trees:
            for node in tree.leaves():
                if node.id == leaf.name.leaf and node.evidence is not None:
                    return leaf, tree, node.evidence
        raise NoSuchResultError(
            f"leaf {leaf.name.leaf} is gone: the answer was judged again; start the audit again"
        )
