"""Labels that others made: claims about texts, images or pages, with whether these support them.

A file has a JSON object a line (docs/trust.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ValidationError,
)

from mind2web2.errors import UsageError
from mind2web2.judge_check.label_rows import OutsideLabel, Source
from mind2web2.judge_check.labelled_set import LabelledClaim, LabelledPage, LabelledSet
from mind2web2.utils.names import nearest_name

_QUESTION = "Which of these statements does the source support?"
# A row may hold a long page, no more.
_MAX_BYTES = 2 * 1024**3
_HOST = "https://labels.example"
# The likeness of a field's name and a misspelling of it.
_SAME_WORD = 0.8


def read_labels(path: Path) -> LabelledSet:
    """Return the labels of a file as a labelled set.

    Raises:
        UsageError: the file cannot be read; the text names the line.
    """
    content = _content(path)
    rows = [_row(line, path, number) for number, line in _lines(content, path)]
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
    return LabelledSet(0, None, digest, pages.given, tuple(claims), ())


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


def _row(line: Mapping[str, Any], path: Path, number: int) -> OutsideLabel:
    _check_names(line, path, number)
    try:
        return OutsideLabel.model_validate(line)
    except ValidationError as error:
        first = error.errors()[0]
        name = "".join(f"{part}: " for part in first["loc"])
        message = name + first["msg"].lower().removeprefix("value error, ")
        raise UsageError(f"{path}, line {number}: {message}") from error


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
