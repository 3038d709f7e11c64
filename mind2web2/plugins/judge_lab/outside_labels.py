"""Labels that others made: claims about texts, images or pages, with whether these support them.

Our own form is JSON lines (docs/trust.md). The readers of AttributionBench, LLM-AggreFact and
MEMERAG take the rows that these data sets publish; none of the data sets is part of this package.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
)

from mind2web2.errors import UsageError
from mind2web2.judge_check.label_rows import OutsideLabel, Source
from mind2web2.judge_check.labelled_set import LabelledClaim, LabelledPage, LabelledSet
from mind2web2.judge_check.other_cases import OtherCases
from mind2web2.utils.near_names import nearest_name

_QUESTION = "Which of these statements does the source support?"
# A row may hold a long page, no more.
_MAX_BYTES = 2 * 1024**3
_HOST = "https://labels.example"
# The likeness of a field's name and a misspelling of it.
_SAME_WORD = 0.8


def read_labels(named: str) -> tuple[LabelledSet, float | None]:
    """Return the labels of a file as a labelled set, and how often annotators agree.

    Args:
        named: a file, or the name of a data set, a colon and its file: ``attributionbench:FILE``,
            ``aggrefact:FILE``, ``memerag:FILE``.

    Raises:
        UsageError: the file cannot be read; the text names the line.
    """
    kind, colon, rest = named.partition(":")
    row_kind = _ROWS.get(kind) if colon else None
    path = Path(rest if row_kind else named)
    content = _content(path)
    rows = [
        row for number, line in _lines(content, path) for row in _rows(row_kind, line, path, number)
    ]
    if not rows:
        raise UsageError(
            f"{path} has no labels: write a JSON object a line, with claim, label and text, url "
            "or image"
        )
    sources = [source for row in rows for source in row.sources]
    pages = _Pages(path.parent, sources)
    claims = []
    for number, row in enumerate(rows, start=1):
        addresses = tuple(pages.address(source) for source in row.sources)
        claims.append(
            LabelledClaim(
                id=f"{number}:{row.id}" if row.id else str(number),
                category=row.category,
                task=row.question or _QUESTION,
                answer=row.response or row.claim,
                question=row.claim,
                right=row.label,
                urls=addresses,
                # If there are several pages, the label does not tell which one it is.
                supported_by=addresses if row.label else (),
                instruction=row.instruction,
            )
        )
    digest = hashlib.sha256(content).hexdigest()[:12]
    labelled = LabelledSet(0, None, digest, pages.given, tuple(claims), ())
    return labelled, annotators_agree([row.labels for row in rows])


class _Pages:
    """The pages of all rows; claims on the same content share its page, as in an evaluation."""

    def __init__(self, folder: Path, sources: Iterable[Source]) -> None:
        self.given: dict[str, LabelledPage] = {}
        self._to_capture = {source.url for source in sources if not source.is_given}
        self._folder = folder
        self._addresses: dict[tuple[str | None, str | None, str | None], str] = {}

    def address(self, source: Source) -> str:
        """Return the address of a page. Raises UsageError: its image does not exist."""
        key = (source.url, source.text, source.image)
        if key not in self._addresses:
            address = source.url or f"{_HOST}/{len(self._addresses) + 1}"
            if source.is_given:
                while address in self.given or address in self._to_capture:
                    address = f"{address}#{len(self._addresses) + 1}"
                self.given[address] = LabelledPage(
                    text=source.text or "", image_file=self._image(source)
                )
            self._addresses[key] = address
        return self._addresses[key]

    def _image(self, source: Source) -> Path | None:
        if source.image is None:
            return None
        path = self._folder / source.image
        if not path.is_file():
            raise UsageError(f"no image {path}, which a label names")
        return path


def annotators_agree(labels: Sequence[Sequence[bool]]) -> float | None:
    """Return how often an annotator says what most of the others say: the ceiling of a judge.

    Rows whose others are divided equally do not count; ``None`` without three labels of any row.
    """
    agree = []
    for row in labels:
        for place, own in enumerate(row):
            others = Counter([*row[:place], *row[place + 1 :]])
            if others[True] != others[False] and len(row) > 2:
                agree.append(own is (others[True] > others[False]))
    return fmean(agree) if agree else None


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path} is larger than {_MAX_BYTES // 1024**3} GB: split it")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _lines(content: bytes, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}, line {number}: no JSON ({error})") from error
        if not isinstance(value, dict):
            raise UsageError(f"{path}, line {number}: no JSON object")
        yield number, value


def _rows(
    kind: type[_DataSetRow] | None, line: Mapping[str, Any], path: Path, number: int
) -> Iterator[OutsideLabel]:
    is_row = kind is None
    try:
        if kind is None:
            _check_names(line, path, number)
            yield OutsideLabel.model_validate(line)
        else:
            row = kind.model_validate(line)
            is_row = True
            yield from row.labels()
    except ValidationError as error:
        first = error.errors()[0]
        name = "".join(f"{part}: " for part in first["loc"])
        message = name + first["msg"].lower().removeprefix("value error, ")
        problem = message if is_row else f"not a row of this data set ({message})"
        raise UsageError(f"{path}, line {number}: {problem}") from error


class _GivenPages(BaseModel):
    """The pages of a row before they are read."""

    pages: object = ()


def _check_names(line: Mapping[str, Any], path: Path, number: int) -> None:
    """Refuse a misspelled field; others that we do not know may be anyone's own."""
    _check_fields(line, OutsideLabel, f"{path}, line {number}")
    pages = _GivenPages.model_validate(line).pages
    for page in pages if isinstance(pages, list) else ():
        if isinstance(page, dict):
            _check_fields(page, Source, f"{path}, line {number}: pages")


def _check_fields(given: Mapping[str, Any], model: type[BaseModel], where: str) -> None:
    missing = model.model_fields.keys() - given.keys()
    for name in given.keys() - model.model_fields.keys():
        near = nearest_name(name, missing, _SAME_WORD)
        # "urls" and "label_by" are fields of their own.
        if near is not None and not name.startswith(near):
            raise UsageError(f"{where}: unknown field {name[:40]!r}: did you mean {near}?")


class _DataSetRow(BaseModel):
    """A row as one of the data sets publishes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def labels(self) -> Iterator[OutsideLabel]:
        """Yield the row's labels in our own form."""
        raise NotImplementedError


def _in_words(label: object) -> object:
    known = {"attributable": True, "not attributable": False}
    if isinstance(label, str):
        return known.get(label, label)
    return label


class _AttributionBenchRow(_DataSetRow):
    id: object
    claim: str
    attribution_label: Annotated[bool, BeforeValidator(_in_words)]
    references: list[str]
    question: str | None
    response: str | None = None
    src_dataset: str

    def labels(self) -> Iterator[OutsideLabel]:
        yield OutsideLabel(
            id=str(self.id),
            claim=self.claim,
            label=self.attribution_label,
            text="\n\n".join(self.references),
            question=self.question,
            response=self.response,
            category=self.src_dataset,
        )


class _AggreFactRow(_DataSetRow):
    claim: str
    label: bool
    doc: str
    dataset: str

    def labels(self) -> Iterator[OutsideLabel]:
        yield OutsideLabel(claim=self.claim, label=self.label, text=self.doc, category=self.dataset)


class _MemeragSentence(BaseModel):
    sentence: str
    factuality: str | list[str]

    @property
    def votes(self) -> tuple[bool, ...]:
        """Return the annotators' labels but for those that call the sentence challenging."""
        known = {"Supported": True, "Not Supported": False}
        label = self.factuality
        votes = [label] if isinstance(label, str) else label
        return tuple(known[vote] for vote in votes if vote in known)


class _MemeragRow(_DataSetRow):
    answer: list[_MemeragSentence]
    context: str
    query: str | None
    language: str = "memerag"

    def labels(self) -> Iterator[OutsideLabel]:
        for sentence in self.answer:
            votes = sentence.votes
            # Sentences about which the annotators are divided have no label.
            if votes.count(True) != votes.count(False):
                yield OutsideLabel(
                    claim=sentence.sentence,
                    label=votes.count(True) > votes.count(False),
                    text=self.context,
                    question=self.query,
                    category=self.language,
                    labels=votes,
                )


_ROWS: dict[str, type[_DataSetRow]] = {
    "attributionbench": _AttributionBenchRow,
    "aggrefact": _AggreFactRow,
    "memerag": _MemeragRow,
}


class LabelsCheck:
    """``check-judge --labels FILE``: labels in place of the set."""

    def add_options(self, parser: argparse._ActionsContainer) -> None:
        """Add ``--labels``."""
        parser.add_argument(
            "--labels",
            metavar="FILE",
            help="use these labels instead of the set: JSON lines with claim, label and text, "
            "url or image; or attributionbench:FILE, aggrefact:FILE, memerag:FILE. This check is "
            "not recorded in results",
        )

    def cases(self, options: argparse.Namespace) -> OtherCases | None:
        """Return the labels of the file that the options name."""
        if options.labels is None:
            return None
        labelled, ceiling = read_labels(options.labels)
        return OtherCases(labelled, is_recorded=False, ceiling=ceiling)


CHECK = LabelsCheck()
