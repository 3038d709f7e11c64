"""The labelled set of ``check-judge``: every page, claim and value follows from a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache

from mind2web2.judge_check.invented import claims, extractions, force, passages
from mind2web2.judge_check.invented.book import Book
from mind2web2.judge_check.labelled_set import LabelledSet

# Raise it with every change of what a seed gives: accuracies of different versions are not compared.
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
        # What a case does not use, such as a field of later versions, does not count.
        content.update(f"{case.model_dump_json(exclude_defaults=True)}\n".encode())
    return LabelledSet(
        VERSION,
        seed,
        content.hexdigest()[:12],
        book.pages,
        tuple(book.claims),
        tuple(book.forms),
    )
