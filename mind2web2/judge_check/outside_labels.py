"""Labels that others made: claims about given texts, with whether the text supports them.

Our own form is JSON lines (docs/trust.md). The readers of AttributionBench, LLM-AggreFact and MEMERAG take
the rows that these data sets publish; none of the data sets is part of this package.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mind2web2.errors import UsageError
from mind2web2.judge_check.labelled_set import LabelledClaim, LabelledPage, LabelledSet

_QUESTION = "Which of these statements does the source support?"
# A row may hold a long page, no more.
_MOST_BYTES = 2 * 1024**3
_HOST = "https://labels.example"


class OutsideLabel(BaseModel):
    """One row.

    Args:
        label: whether the text supports the claim.
        text: what the claim is held against.
        question: what was asked when the claim was made.
        response: the answer that the claim is from.
        labels: of several annotators.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    claim: str = Field(min_length=1)
    label: bool
    text: str = Field(min_length=1)
    id: str | None = None
    question: str | None = None
    response: str | None = None
    category: str = "labels"
    labels: tuple[bool, ...] = ()


def read_labels(named: str) -> tuple[LabelledSet, float | None]:
    """Return the labels of a file as a labelled set, and how often annotators agree with the others.

    Args:
        named: a file, or the name of a data set, a colon and its file: ``attributionbench:FILE``,
            ``aggrefact:FILE``, ``memerag:FILE``.

    Raises:
        UsageError: the file cannot be read; the text names the line.
    """
    kind, colon, rest = named.partition(":")
    reader = _READERS.get(kind) if colon else None
    path = Path(rest if reader else named)
    content = _content(path)
    rows = [
        row
        for number, line in _lines(content, path)
        for row in _rows(reader, line, path, number)
    ]
    if not rows:
        raise UsageError(
            f"{path} has no labels: write a JSON object a line, with claim, label and text"
        )
    pages: dict[str, LabelledPage] = {}
    addresses: dict[str, str] = {}
    claims = []
    for number, row in enumerate(rows, start=1):
        # Claims on one text share its page, as in an evaluation.
        address = addresses.setdefault(row.text, f"{_HOST}/{len(addresses) + 1}")
        pages.setdefault(address, LabelledPage(text=row.text))
        claims.append(
            LabelledClaim(
                id=f"{number}:{row.id}" if row.id else str(number),
                category=row.category,
                task=row.question or _QUESTION,
                answer=row.response or row.claim,
                question=row.claim,
                right=row.label,
                urls=(address,),
                supported_by=(address,) if row.label else (),
            )
        )
    digest = hashlib.sha256(content).hexdigest()[:12]
    labelled = LabelledSet(0, None, digest, pages, tuple(claims), ())
    return labelled, annotators_agree([row.labels for row in rows])


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
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(
                f"{path} is larger than {_MOST_BYTES // 1024**3} GB: split it"
            )
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _lines(content: bytes, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: no JSON ({error})") from error
        if not isinstance(value, dict):
            raise UsageError(f"{path}, line {number}: no JSON object")
        yield number, value


def _rows(
    reader: Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]] | None,
    line: Mapping[str, Any],
    path: Path,
    number: int,
) -> Iterator[OutsideLabel]:
    try:
        for row in [line] if reader is None else reader(line):
            yield OutsideLabel.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{path}, line {number}: {name}: {first['msg'].lower()}"
        ) from error
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"{path}, line {number}: not a row of this data set ({error})"
        ) from error


def _attributionbench(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    known = {"attributable": True, "not attributable": False}
    yield {
        "id": str(row["id"]),
        "claim": row["claim"],
        "label": known.get(row["attribution_label"], row["attribution_label"]),
        "text": "\n\n".join(row["references"]),
        "question": row["question"],
        "response": row.get("response"),
        "category": row["src_dataset"],
    }


def _aggrefact(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield {
        "claim": row["claim"],
        "label": row["label"],
        "text": row["doc"],
        "category": row["dataset"],
    }


def _memerag(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    known = {"Supported": True, "Not Supported": False}
    for sentence in row["answer"]:
        given = sentence["factuality"]
        votes = [
            known[vote]
            for vote in ([given] if isinstance(given, str) else given)
            if vote in known
        ]
        # Sentences that the annotators call challenging, or are divided about, have no label.
        if votes.count(True) != votes.count(False):
            yield {
                "claim": sentence["sentence"],
                "label": votes.count(True) > votes.count(False),
                "text": row["context"],
                "question": row["query"],
                "category": row.get("language", "memerag"),
                "labels": votes,
            }


_READERS: dict[str, Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]]] = {
    "attributionbench": _attributionbench,
    "aggrefact": _aggrefact,
    "memerag": _memerag,
}
