"""An auditor's session: whole answers in random order, then a second look."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mind2web2.analysis.audited import (
    JudgedLeaf,
    audited_answers,
    label_verdicts,
)
from mind2web2.analysis.correction import population_of
from mind2web2.analysis.labelled_answers import wanted_leaves
from mind2web2.analysis.labels import LabelFile, LeafName, Verdict
from mind2web2.errors import UsageError
from mind2web2.rubric.verdicts import Evidence
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.keys import AnswerKey, Json, NoSuchResultError
from mind2web2.viewer.markdown import markdown_tree
from mind2web2.viewer.routes import JsonResponse, json_route

_MAX_NOTE_CHARS = 2000


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """An auditor's session on one agent."""

    root: Path
    agent: str
    auditor: str


class NewLabel(BaseModel):
    """A label as the front end sends it.

    Args:
        label: ``None`` takes back the leaf's label.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    leaf: LeafName
    label: Verdict | None
    note: str = Field(default="", max_length=_MAX_NOTE_CHARS)
    seconds: float = Field(default=0.0, ge=0, le=1e7)


class AuditSession:
    """The answers of one auditor. Raises UsageError: there is nothing to label.

    Answers come one after another, each with all its leaves. A leaf behind one that the auditor
    fails needs no label.
    """

    def __init__(self, catalog: Catalog, settings: AuditSettings) -> None:
        self._catalog = catalog
        self._settings = settings
        self._file = LabelFile(settings.root, settings.agent, settings.auditor)
        tasks = {answer.task_id for answer in catalog.answers(settings.agent)}
        answers = audited_answers(catalog.paths.eval_results_root, settings.agent, tasks)
        if not any(answer.leaves for answer in answers):
            raise UsageError(f"agent {settings.agent} has no leaves that a judge's votes decided")
        self._population = population_of(answers)
        by_name = {one.name: one for one in answers}
        self._answers = [by_name[name] for name in self._population.order]
        self._leaves = {leaf.name: leaf for one in answers for leaf in one.leaves}

    def state(self) -> Json:
        """Return the leaves up to the first answer that lacks a label, without verdicts.

        ``answers`` is how many are labelled as a whole, of so many.
        """
        labels = self._file.blind()
        shown: list[JudgedLeaf] = []
        verdicts = label_verdicts(self._answers, [labels])
        whole = 0
        for answer in self._answers:
            leaf_ids = wanted_leaves(answer, verdicts)
            shown += [leaf for leaf in answer.leaves if leaf in leaf_ids or leaf.seen in labels]
            if leaf_ids:
                break
            whole += 1
        return {
            "agent": self._settings.agent,
            "auditor": self._settings.auditor,
            "whole": whole,
            "answers": len(self._answers),
            "leaves": [
                {"leaf": [*leaf.name], "label": labels[leaf.seen].label}
                if leaf.seen in labels
                else {"leaf": [*leaf.name], "label": None}
                for leaf in shown
            ],
        }

    def item(self, name: LeafName) -> Json:
        """Return the claim and the addresses of the pages of one leaf, without its verdict."""
        _, root, evidence = self._judged_leaf(name)
        key = AnswerKey(self._settings.agent, name.task, name.answer)
        pages = [
            {"url": check.url, "sha256": check.page.sha256}
            for check in evidence.pages
            if check.page is not None
        ]
        return {
            "agent": key.agent,
            "task": key.task,
            "answer": key.answer,
            "task_text": root.desc,
            "claim": evidence.claim,
            "instruction": evidence.additional_instruction,
            "pages": pages,
            # If the judge saw no page for a claim, the answer is all there is.
            "markdown": [] if pages else markdown_tree(self._catalog.answer_text(key) or ""),
        }

    def label(self, made: NewLabel) -> Json:
        """Keep a label, or take one back, and return the state."""
        leaf, _, _ = self._judged_leaf(made.leaf)
        labels = self._file.blind()
        is_taken_back = made.label is None
        # A label stays until it is taken back.
        if is_taken_back is (leaf.seen in labels):
            self._file.begin(self._population)
            self._file.append(
                leaf.name,
                leaf.seen_sha256,
                made.label or labels[leaf.seen].label,
                note=made.note,
                seconds=made.seconds,
                is_taken_back=is_taken_back,
            )
        return self.state()

    def routes(self) -> list[Route]:
        """Return the routes of the session."""

        def item(request: Request) -> Json:
            asked = request.query_params
            return self.item(LeafName(*(asked.get(name, "") for name in LeafName._fields)))

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

    def _judged_leaf(self, name: LeafName) -> tuple[JudgedLeaf, WrittenNode, Evidence]:
        """Return a leaf, the root of its tree, and its evidence."""
        if name not in self._leaves:
            raise NoSuchResultError(f"the audit has no leaf {'/'.join(name)}")
        key = AnswerKey(self._settings.agent, name.task, name.answer)
        for tree in self._catalog.content(key).trees:
            for node in tree.leaves():
                if node.id == name.leaf and node.evidence is not None:
                    return self._leaves[name], tree, node.evidence
        raise NoSuchResultError(
            f"leaf {name.leaf} is gone: the answer was judged again; start the audit again"
        )
