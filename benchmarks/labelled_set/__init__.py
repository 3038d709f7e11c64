"""The labelled set of ``mind2web2 check-judge``: every page, claim and value follows from a seed.

uv run python benchmarks/make_labelled_set.py      writes mind2web2/judge_check/labelled_set.json

Raise VERSION with every change that changes the file: accuracies of different versions are not compared.
"""

from __future__ import annotations

import json

from labelled_set import claims, extractions
from labelled_set.book import Book
from labelled_set.world import World

VERSION = 1
SEED = 18


def labelled_set_json() -> str:
    """Return the content of the file."""
    book = Book(World(SEED))
    for category in (*claims.CATEGORIES, *extractions.CATEGORIES):
        category(book)
    content = {
        "version": VERSION,
        "seed": SEED,
        "pages": book.pages,
        "claims": book.claims,
        "extractions": book.extractions,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
