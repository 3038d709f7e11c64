"""Labels of people as rows that measure any judge later (``check-judge --labels``)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from mind2web2.analysis.audited import AuditedAnswer, JudgedLeaf, audited_answers
from mind2web2.analysis.corrections import labelled_answers
from mind2web2.analysis.labels import LabelFile, Labels, auditors
from mind2web2.errors import CaptureError, ResultWriteError
from mind2web2.judge_check.label_rows import OutsideLabel, Source
from mind2web2.pages.cited_pages import AgentCache
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.results.stored_results import answer_dir
from mind2web2.rubric.verdicts import Evidence, PageCheck
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.path_config import PathConfig
from mind2web2.verification.config import EvaluatorConfig

log = logging.getLogger(__name__)

# Why a label has no row.
UNDECIDED = "undecidable, or auditors are divided"
CHANGED = "a page has changed or is gone"
NO_ANSWER = "the text of the answer is gone"
PART_OF_ANSWER = "its answer has no labels of all leaves, or was not drawn at random"


@dataclass(frozen=True)
class ExportedLabels:
    """The record of an export.

    Args:
        left_out: labelled leaves without a row, by the reason.
    """

    rows: int
    left_out: Counter[str]


@dataclass(frozen=True)
class LabelExport:
    """Writes an agent's blind labels, with all that a judge is shown of each claim.

    Args:
        path: of the JSON lines; images go to a folder beside it.
    """

    paths: PathConfig
    audits_root: Path
    agent: str
    path: Path
    left_out: Counter[str] = field(default_factory=Counter)
    _images: dict[tuple[str, str], str] = field(default_factory=dict)

    async def write(self) -> ExportedLabels:
        """Write the file.

        Raises:
            ResultWriteError: it cannot be written.
        """
        names = auditors(self.audits_root, self.agent)
        given = [LabelFile(self.audits_root, self.agent, name).blind() for name in names]
        answers = audited_answers(self.paths.eval_results_root, self.agent)
        found = labelled_answers(answers, self.audits_root, self.agent)
        whole = {} if found is None else found.scores
        rows = []
        for answer in answers:
            for leaf in answer.leaves:
                labels = _labels_of(leaf, given)
                if not labels or leaf.is_skipped:
                    continue
                if answer.name not in whole:
                    # The other leaves are not a sample of all leaves. They would give a judge's
                    # errors the wrong weight.
                    self.left_out[PART_OF_ANSWER] += 1
                elif row := await self._row(answer, leaf, labels):
                    rows.append(row)
        lines = [row.model_dump_json(exclude_defaults=True) + "\n" for row in rows]
        self._write(self.path, "".join(lines))
        return ExportedLabels(len(rows), self.left_out)

    async def _row(
        self, answer: AuditedAnswer, leaf: JudgedLeaf, labels: Sequence[str]
    ) -> OutsideLabel | None:
        decided = tuple(label == "y" for label in labels if label != "u")
        lead = 2 * sum(decided) - len(decided)
        if not lead:
            self.left_out[UNDECIDED] += 1
            return None
        evidence = _evidence(answer, leaf)
        text = self._answer_text(answer)
        checks = [check for check in evidence.pages if check.page is not None]
        pages = [await self._source(answer.task, check) for check in checks]
        if any(page is None for page in pages):
            self.left_out[CHANGED] += 1
            return None
        if text is None and not pages:
            self.left_out[NO_ANSWER] += 1
            return None
        return OutsideLabel(
            id="/".join(leaf.name),
            claim=evidence.claim or "",
            label=lead > 0,
            labels=decided if len(decided) > 1 else (),
            question=None if answer.root is None else answer.root.desc or None,
            response=text,
            instruction=evidence.additional_instruction,
            category=("about the answer", "on a page", "on several pages")[min(len(pages), 2)],
            pages=tuple(page for page in pages if page is not None),
        )

    def _answer_text(self, answer: AuditedAnswer) -> str | None:
        name = f"{answer.answer}.md"
        roots = self.paths
        judged = answer_dir(roots.eval_results_root, self.agent, answer.task, name)
        for path in (
            judged / name,
            roots.answers_root / self.agent / answer.task / name,
        ):
            if path.is_file():
                return read_regular_file(path).decode("utf-8", "replace")
        return None

    async def _source(self, task: str, check: PageCheck) -> Source | None:
        """Return a page with its text and screenshot; ``None`` where another one was seen."""
        cache = AgentCache(self.paths.cache_root / self.agent).of(task)
        seen = None if check.page is None else check.page.sha256
        if cache.has(check.url) is None or (seen is not None and cache.digest(check.url) != seen):
            return None
        if cache.has_web(check.url):
            text, screenshot = cache.get_web(check.url)
            if not text and screenshot is None:
                return None
            image = self._image_name(task, check.url, screenshot)
            return Source(url=check.url, text=text or None, image=image)
        request = PageRequest(
            cache=cache,
            url=check.url,
            settings=EvaluatorConfig().page_settings(),
            with_images=False,
            capture=None,
            limit=nullcontext(),
            logger=log,
        )
        try:
            page = await PageLibrary().page(request)
        except CaptureError:
            return None
        return Source(url=check.url, text=str(page.text) or None)

    def _image_name(self, task: str, url: str, screenshot: bytes | None) -> str | None:
        if screenshot is None:
            return None
        if (task, url) not in self._images:
            folder = f"{self.path.stem}_images"
            name = f"{folder}/{len(self._images) + 1}.jpg"
            self._write(self.path.parent / name, screenshot)
            self._images[task, url] = name
        return self._images[task, url]

    def _write(self, path: Path, content: str | bytes) -> None:
        try:
            write_whole(path, content)
        except OSError as error:
            raise ResultWriteError.at(path, error) from error


def _labels_of(leaf: JudgedLeaf, given: Sequence[Labels]) -> list[str]:
    return [own[leaf.seen].label for own in given if leaf.seen in own]


def _evidence(answer: AuditedAnswer, leaf: JudgedLeaf) -> Evidence:
    nodes = () if answer.root is None else answer.root.leaves()
    found = next(node.evidence for node in nodes if node.id == leaf.name.leaf)
    if found is None:
        raise ValueError(f"leaf {leaf.name.leaf} has no evidence")
    return found
