"""One auditor's session in the viewer: the leaves to label, blind, and the verdict after each label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mind2web2.errors import UsageError
from mind2web2.viewer.audit import JudgedLeaf, LabelFile, Verdict, judged_leaves, sample
from mind2web2.viewer.catalog import Catalog, Json, NoSuchResultError, tree_rows
from mind2web2.viewer.server import JsonResponse

_MAX_NOTE_CHARS = 2000


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Which leaves an auditor labels.

    Args:
        root: the folder of all labels.
        size: how many leaves.
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
    """The sample of one auditor.

    Raises:
        UsageError: no leaf was decided by votes of the judge.
    """

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

        async def state(_: Request) -> Response:
            return JsonResponse(await run_in_threadpool(self.state))

        async def item(request: Request) -> Response:
            number = request.query_params.get("number", "")
            return JsonResponse(await run_in_threadpool(self.item, int(number) if number.isdecimal() else -1))

        async def label(request: Request) -> Response:
            try:
                made = NewLabel.model_validate_json(await request.body())
            except ValidationError as error:
                return JsonResponse({"error": str(error.errors()[0]["msg"])}, 400)
            return JsonResponse(await run_in_threadpool(self.label, made))

        return [
            Route("/api/audit", state),
            Route("/api/audit-item", item),
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
