"""Labels that others made: claims about texts or images, with whether these support them.

A file has a JSON object a line (docs/trust.md).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mind2web2.plugin import UsageError
from mind2web2_trust.judge_check.labelled_set import LabelledClaim, LabelledPage, LabelledSet

_QUESTION = "Which of these statements does the source support?"
_HOST = "https://labels.example"


class OutsideLabel(BaseModel):
    """One row: a claim about a page, or about the answer where it has no page.

    Args:
        label: whether the page supports the claim.
        text: the page's text.
        image: the file of the page's screenshot, beside the file of the labels.
        question: what was asked when the claim was made.
        response: the answer that the claim is from.
        instruction: of the eval script that made the claim.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    claim: str = Field(min_length=1)
    label: bool
    text: str = ""
    image: str | None = Field(default=None, min_length=1)
    id: str | None = None
    question: str = _QUESTION
    response: str | None = None
    instruction: str | None = None
    category: str = "labels"

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        if not self.text and self.image is None and self.response is None:
            raise ValueError("text, image or response missing")
        return self

    @property
    def page(self) -> tuple[str, str | None]:
        """Return the page's text and image, which are empty for a claim about the answer."""
        return self.text, self.image


def read_labels(path: Path) -> LabelledSet:
    """Return the labels of a file as a labelled set.

    Raises:
        UsageError: the file cannot be read; the text names the line.
    """
    with UsageError.unable_to(f"read {path}"):
        content = path.read_bytes()
    lines = enumerate(content.splitlines(), start=1)
    rows = [_row(line, f"{path}, line {number}") for number, line in lines if line.strip()]
    if not rows:
        raise UsageError(
            f"{path} has no labels: write a JSON object a line, with claim, label and text or image"
        )
    # Claims on the same content share its page, as in an evaluation.
    contents = dict.fromkeys(row.page for row in rows if any(row.page))
    addresses = {page: f"{_HOST}/{number}" for number, page in enumerate(contents, start=1)}
    pages = {
        address: LabelledPage(text=text, image_file=_image(path.parent, image))
        for (text, image), address in addresses.items()
    }
    claims = []
    for number, row in enumerate(rows, start=1):
        urls = (addresses[row.page],) if any(row.page) else ()
        claims.append(
            LabelledClaim(
                id=f"{number}:{row.id}" if row.id else str(number),
                category=row.category,
                task=row.question,
                answer=row.response or row.claim,
                question=row.claim,
                right=row.label,
                urls=urls,
                supported_by=urls if row.label else (),
                instruction=row.instruction,
            )
        )
    digest = hashlib.sha256(content).hexdigest()[:12]
    return LabelledSet(0, None, digest, pages, tuple(claims), ())


def _image(folder: Path, name: str | None) -> Path | None:
    if name is None:
        return None
    path = folder / name
    if not path.is_file():
        raise UsageError(f"no image {path}, which a label names")
    return path


def _row(line: bytes, where: str) -> OutsideLabel:
    try:
        return OutsideLabel.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        name = "".join(f"{part}: " for part in first["loc"])
        raise UsageError(f"{where}: {name}{first['msg'].removeprefix('Value error, ')}") from error
