"""Variants of a perfect answer as case files, with the scores that the rubric gives them today."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mind2web2.plugin import AuthorFile, FieldShape, write_whole
from mind2web2_authoring.cases import Case, CaseHeader, answer_of, case_text
from mind2web2_authoring.other_values import FieldPath, change_values, texts_in
from mind2web2_authoring.variants import Variants, another, nothing

_LINK = re.compile(r"\[([^\]]*)\]\(\s*<?https?://[^)]*\)")
_URL = re.compile(r"https?://[^\s)>\]\"']+")
# Shorter texts occur in other lines as well.
_LEAST_CHARS = 4


@dataclass(frozen=True)
class _Draft:
    name: str
    about: str
    extract: dict[str, Any]
    answer: str


async def written_cases(variants: Variants, perfect: Case) -> tuple[str, ...]:
    """Write the variants that are not there yet, once the perfect answer scores 1.

    Return their paths.
    """
    if not variants.is_full:
        return ()
    paths = []
    for draft in _drafts(variants, perfect):
        path = perfect.file.path.parent / f"{draft.name}.md"
        if path.exists() or draft.extract == perfect.header.extract != {}:
            continue
        if await _write(variants, perfect, draft, path):
            paths.append(str(path))
    return tuple(paths)


async def _write(variants: Variants, perfect: Case, draft: _Draft, path: Path) -> bool:
    """Write a variant with its verdicts; a script that fails on it is a finding already."""
    header = perfect.header.model_copy(update={"extract": draft.extract, "leaves": {}})
    case = Case(AuthorFile(path), header, draft.answer)
    run = await variants.script.run(draft.answer, answer_of(case, variants.right.truth))
    if run.score is None:
        return False
    statuses = {leaf.id: leaf.verdict.status for leaf in run.leaves}
    failed = {name: status for name, status in statuses.items() if status in ("failed", "skipped")}
    update = {"expect": round(run.score, 4), "leaves": failed}
    note = f"{draft.about}; expect is what the rubric gives today: check that it is what you want"
    header = CaseHeader.model_validate(header.model_copy(update=update).model_dump())
    write_whole(path, case_text(header, draft.answer, note))
    return True


def _drafts(variants: Variants, perfect: Case) -> Iterator[_Draft]:
    extract = perfect.header.extract
    for key, shape, count in variants.lists():
        path = _path_in(extract, key, shape)
        kept = change_values(extract, path, lambda items, _number: items[:-1])
        gone = set(texts_in(extract)) - set(texts_in(kept))
        lines = perfect.answer.splitlines()
        left = [line for line in lines if not any(text in line for text in gone)]
        name = f"without_{_file_name(shape)}_{count}"
        yield _Draft(name, "without the last item", kept, "\n".join(left))
    for key, shape in variants.fields("text", "number", "flag", "choice"):
        wrong = _in_first(extract, _path_in(extract, key, shape), shape)
        text = perfect.answer
        for old, new in zip(texts_in(extract), texts_in(wrong), strict=True):
            text = text.replace(old, new) if old != new and len(old) >= _LEAST_CHARS else text
        yield _Draft(f"wrong_{_file_name(shape)}", f"another {shape.in_words}", wrong, text)
    others, bare = extract, extract
    for key, shape in variants.fields("address"):
        path = _path_in(extract, key, shape)
        others, bare = (
            change_values(others, path, another(shape)),
            change_values(bare, path, nothing),
        )
    page = "https://another-page.example/"
    yield _Draft("wrong_page", "citations of other pages", others, _URL.sub(page, perfect.answer))
    unlinked = _URL.sub("", _LINK.sub(r"\1", perfect.answer))
    yield _Draft("no_citations", "the same without links", bare, unlinked)


def _path_in(extract: dict[str, Any], key: str, shape: FieldShape) -> FieldPath:
    """Return where a field stands in the author's values.

    The field stands under the extraction's name, or beside it.
    """
    is_named = isinstance(extract.get(key), dict)
    return (key, *shape.path) if is_named else shape.path


def _in_first(extract: dict[str, Any], path: FieldPath, shape: FieldShape) -> dict[str, Any]:
    """Return the values with another one in the first item."""
    change = another(shape)
    return change_values(deepcopy(extract), path, lambda value, n: value if n else change(value, n))


def _file_name(shape: FieldShape) -> str:
    return shape.in_words.replace(".", "_")
