"""A labelled set: claims and forms with their pages and their right replies, and parts of it.

``benchmarks/labelled_set.py`` makes the one that the package ships.
"""

from __future__ import annotations

import json
import lzma
import random
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, create_model

SHIPPED = Path(__file__).with_name("labelled_set.json.xz")
FieldKind = Literal["text", "integer", "number", "list"]
_TYPES: dict[FieldKind, Any] = {
    "text": str | None,
    "integer": int | None,
    "number": float | None,
    "list": list[str],
}


class Picture(BaseModel):
    """An image on a page: a poster with lines of text, or a chart with a bar for each row."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["poster", "chart"]
    title: str
    rows: tuple[tuple[str | int, ...], ...]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LabelledPage(_Part):
    """A page as a capture stores it; its screenshot is drawn from the text and the picture.

    Args:
        image_file: its screenshot in place of a drawn one.
    """

    text: str
    image_file: Path | None = None
    picture: Picture | None = None
    trouble: str | None = None
    unfolded: tuple[str, ...] = ()


class Case(_Part):
    """One question; its right reply is ``right``.

    Args:
        question: the claim, or the fields to extract.
    """

    id: str
    category: str
    task: str
    answer: str
    question: str

    @property
    def pair(self) -> str:
        """Return the name that a true claim shares with its false twin."""
        return self.id.removesuffix("-true").removesuffix("-false")


class LabelledClaim(Case):
    """A claim with its true verdict.

    Args:
        urls: the pages given as its sources; none for a claim about the answer.
        supported_by: those of them that support it.
        shows: the passages, literally, from which the verdict follows, as far as it follows from
            any.
        instruction: of the eval script that made the claim.
    """

    right: bool
    urls: tuple[str, ...]
    supported_by: tuple[str, ...]
    shows: tuple[str, ...] = ()
    instruction: str | None = None


class LabelledForm(Case):
    """An extraction with its right values.

    Args:
        url: the page to read; ``None`` for the answer.
    """

    right: Mapping[str, str | int | float | list[str] | None]
    url: str | None
    fields: Mapping[str, FieldKind]

    def template(self) -> type[BaseModel]:
        """Return the template to fill."""
        fields: dict[str, Any] = {name: (_TYPES[kind], ...) for name, kind in self.fields.items()}
        return create_model("Form", **fields)

    def is_filled_rightly(self, value: BaseModel) -> bool:
        """Compare values with the right ones.

        Letter case, white space, a final full stop and the order of a list do not count.
        """
        given = value.model_dump()
        return all(_plain(given[name]) == _plain(wanted) for name, wanted in self.right.items())


def _plain(value: object) -> object:
    if isinstance(value, list):
        return sorted(str(_plain(item)) for item in value)
    if isinstance(value, str):
        return " ".join(value.casefold().split()).removesuffix(".") or None
    return value


class LabelledSet(NamedTuple):
    """The cases with their pages by address.

    Args:
        version: of the generator; 0 for labels that others made.
        seed: by which it was drawn; ``None`` for labels that others made.
        digest: the beginning of the content's SHA-256.
        is_whole: nothing was left out.
    """

    version: int
    seed: int | None
    digest: str
    pages: Mapping[str, LabelledPage]
    claims: tuple[LabelledClaim, ...]
    forms: tuple[LabelledForm, ...]
    is_whole: bool = True

    @property
    def is_outside(self) -> bool:
        """Tell whether others made the labels."""
        return self.seed is None

    @property
    def cases(self) -> tuple[LabelledClaim | LabelledForm, ...]:
        """Return claims and forms."""
        return *self.claims, *self.forms

    @property
    def categories(self) -> list[str]:
        """Return the categories in the order of the set."""
        return list(dict.fromkeys(case.category for case in self.cases))

    def of(self, categories: Collection[str]) -> LabelledSet:
        """Return the part with these categories."""
        return self._only({case.id for case in self.cases if case.category in categories})

    def sample(self, size: int) -> LabelledSet:
        """Return so many cases, as many of each category as possible.

        True claims with their false twins.
        """
        drawn = random.Random(0)
        queues: dict[str, list[list[str]]] = defaultdict(list)
        for (category, _), twins in groupby(self.cases, lambda case: (case.category, case.pair)):
            queues[category].append([case.id for case in twins])
        turns = []
        for queue in queues.values():
            drawn.shuffle(queue)
            turns += [(place, drawn.random(), ids) for place, ids in enumerate(queue)]
        chosen: set[str] = set()
        for _, _, ids in sorted(turns):
            if len(chosen) + len(ids) <= size:
                chosen.update(ids)
        return self._only(chosen)

    def _only(self, ids: Collection[str]) -> LabelledSet:
        claims = tuple(case for case in self.claims if case.id in ids)
        forms = tuple(case for case in self.forms if case.id in ids)
        urls = {url for claim in claims for url in claim.urls} | {form.url for form in forms}
        pages = {url: page for url, page in self.pages.items() if url in urls}
        is_whole = self.is_whole and len(claims) + len(forms) == len(self.cases)
        return self._replace(pages=pages, claims=claims, forms=forms, is_whole=is_whole)


@cache
def shipped_set() -> LabelledSet:
    """Return the set of this version of the package."""
    content = json.loads(lzma.decompress(SHIPPED.read_bytes()))
    return LabelledSet(
        content["version"],
        content["seed"],
        content["digest"],
        {url: LabelledPage.model_validate(page) for url, page in content["pages"].items()},
        tuple(LabelledClaim.model_validate(case) for case in content["claims"]),
        tuple(LabelledForm.model_validate(case) for case in content["forms"]),
    )
