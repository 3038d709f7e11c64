"""Labels from the comparison: a person decides leaves on which two agents or two judges differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mind2web2.analysis.audited import JudgedLeaf, audited_answer
from mind2web2.analysis.labels import LabelFile, LeafName, Verdict
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.keys import AnswerKey, Json, NoSuchResultError
from mind2web2.viewer.routes import JsonResponse, json_route


class DifferingLabel(BaseModel):
    """A label as the front end sends it.

    Args:
        label: ``None`` takes back the leaf's label.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str
    leaf: LeafName
    label: Verdict | None


@dataclass(frozen=True, slots=True)
class DifferingLabels:
    """The labels of one person, who sees the verdicts; they count for agreement alone.

    Args:
        audits: the folder of labels.
    """

    catalog: Catalog
    audits: Path
    auditor: str

    def labels(self) -> Json:
        """Return the labels by agent, task, answer and leaf."""
        found = []
        for agent in self.catalog.agents():
            for label in self._file(agent).differing().values():
                found.append([agent, *label.name, label.label])
        return {"auditor": self.auditor, "labels": found}

    def label(self, made: DifferingLabel) -> Json:
        """Keep a label, or take one back, and return all labels.

        Raises NoSuchResultError: no such leaf.
        """
        leaf = self._leaf(made)
        file = self._file(made.agent)
        known = file.differing().get(leaf.seen)
        if known is not None and made.label != known.label:
            file.append(
                leaf.name, leaf.seen_sha256, known.label, is_differing=True, is_taken_back=True
            )
        if made.label is not None and (known is None or made.label != known.label):
            file.append(leaf.name, leaf.seen_sha256, made.label, is_differing=True)
        return self.labels()

    def routes(self) -> list[Route]:
        """Return the routes of the labels."""

        async def label(request: Request) -> Response:
            try:
                made = DifferingLabel.model_validate_json(await request.body())
            except ValidationError as error:
                return JsonResponse({"error": str(error.errors()[0]["msg"])}, 400)
            return JsonResponse(await run_in_threadpool(self.label, made))

        return [
            json_route("/api/differing-labels", lambda _: self.labels()),
            Route("/api/differing-label", label, methods=["POST"]),
        ]

    def _file(self, agent: str) -> LabelFile:
        return LabelFile(self.audits, agent, self.auditor)

    def _leaf(self, made: DifferingLabel) -> JudgedLeaf:
        key = AnswerKey(made.agent, made.leaf.task, made.leaf.answer)
        if made.agent in self.catalog.agents() and (result := self.catalog.result(key)):
            answer = audited_answer(key.task, key.answer, 0.0, result.content)
            for leaf in answer.leaves:
                if leaf.name == made.leaf and not leaf.is_skipped:
                    return leaf
        raise NoSuchResultError(f"the judge decided no leaf {'/'.join(made.leaf)}")
