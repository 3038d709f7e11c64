"""Make the labelled set of ``check-judge``, which follows from a seed.

    uv run python benchmarks/labelled_set.py

writes ``mind2web2_trust/judge_check/labelled_set.json.xz``, which the package ships.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path

from invented import claims, extractions, force, passages
from invented.book import Book

from mind2web2_trust.judge_check.labelled_set import SHIPPED, LabelledSet

# Raise it with every change of what a seed gives: accuracies of different versions are not
# compared.
VERSION = 2
SEED = 18
CATEGORIES: tuple[Callable[[Book], None], ...] = (
    *claims.CATEGORIES,
    *force.CATEGORIES,
    *passages.CATEGORIES,
    *extractions.CATEGORIES,
)


@cache
def invented_set(seed: int = SEED) -> LabelledSet:
    """Return the set of this version of the package, drawn by a seed."""
    book = Book(seed)
    for category in CATEGORIES:
        category(book)
    content = hashlib.sha256()
    for url, page in book.pages.items():
        content.update(f"{url} {page.model_dump_json()}\n".encode())
    for case in (*book.claims, *book.forms):
        # Fields that a case does not use, such as those of later versions, do not count.
        content.update(f"{case.model_dump_json(exclude_defaults=True)}\n".encode())
    return LabelledSet(
        VERSION,
        seed,
        content.hexdigest()[:12],
        book.pages,
        tuple(book.claims),
        tuple(book.forms),
    )


def written(labelled: LabelledSet) -> bytes:
    """Return a set as the package ships it; the same bytes for the same set."""
    content = {
        "version": labelled.version,
        "seed": labelled.seed,
        "digest": labelled.digest,
        "pages": {
            url: page.model_dump(mode="json", exclude_defaults=True)
            for url, page in labelled.pages.items()
        },
        "claims": [case.model_dump(mode="json", exclude_defaults=True) for case in labelled.claims],
        "forms": [case.model_dump(mode="json", exclude_defaults=True) for case in labelled.forms],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return lzma.compress(text.encode(), preset=9)


if __name__ == "__main__":
    Path(SHIPPED).write_bytes(written(invented_set()))
