"""Cases of a task's author: answers with the score that they deserve, and variants of a perfect one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mind2web2.authoring.plausible import fields_of, lists_of
from mind2web2.authoring.rehearsal_run import (
    Asked,
    LoadedScript,
    Rehearsed,
    World,
    rehearsed,
)
from mind2web2.errors import UsageError
from mind2web2.scripts.rubric_file import (
    RubricFileError,
    field_name,
    line_of,
    parsed_yaml,
)
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import natural_key
from mind2web2.verification.extractor import empty_instance

PERFECT = "perfect"
# A score may be given with two decimals.
TOLERANCE = 0.005
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_URL = re.compile(r"https?://[^\s)>\]\"']+")
_LINK = re.compile(r"\[([^\]]*)\]\(\s*<?https?://[^)]*\)")
_WRONG_PAGE = "https://another-page.example/"


class Fact(BaseModel):
    """Claims that hold, by pattern (``*`` for any text), on pages by pattern."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    page: str = "*"


class CaseHeader(BaseModel):
    """What stands before the answer's text, between lines of ``---``.

    Args:
        expect: the score that the answer deserves.
        leaves: verdicts of single leaves, where they matter.
        extract: what the judge reads from the answer, by field (of scripts: by extraction or by field).
        facts: the claims that hold; by default those that the perfect answer's evaluation asks about.
        missing_pages: patterns of pages that are not there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    expect: float = Field(ge=0, le=1)
    leaves: dict[str, Literal["passed", "failed", "skipped"]] = Field(
        default_factory=dict
    )
    extract: dict[str, Any] = Field(default_factory=dict)
    facts: tuple[Fact | str, ...] | None = None
    missing_pages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """An answer with its header."""

    path: Path
    header: CaseHeader
    answer: str

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.path.stem


@dataclass(frozen=True)
class CaseOutcome:
    """What became of a case; ``differs`` says where it is not as expected."""

    name: str
    expected: float
    got: float
    differs: str | None
    rehearsed: Rehearsed


def read_cases(folder: Path) -> list[Case]:
    """Return a task's cases, the perfect one first.

    Raises:
        UsageError: a file is wrong; the text names line and field.
    """
    paths = sorted(
        folder.glob("*.md"),
        key=lambda path: (path.stem != PERFECT, natural_key(path.stem)),
    )
    return [read_case(path) for path in paths]


def read_case(path: Path) -> Case:
    """Return one case; as ``read_cases``."""
    text = read_regular_file(path).decode("utf-8", "replace")
    front = _FRONT.match(text)
    if front is None:
        raise UsageError(
            f"{path} has no header: begin it with ---, expect: 1.0 and ---"
        )
    try:
        # The line of the header's opening counts.
        plain, lines = parsed_yaml(b"\n" + front[1].encode(), path)
        header = CaseHeader.model_validate(plain or {})
    except RubricFileError as error:
        raise UsageError(str(error)) from error
    except ValidationError as error:
        faults = error.errors(include_url=False)
        # A misspelled name explains why another one is missing.
        fault = next(
            (each for each in faults if each["type"] == "extra_forbidden"), faults[0]
        )
        place = tuple(fault["loc"])
        where = f"{path}, line {line_of(lines, place)}, {field_name(place)}"
        known = (
            f": there is {', '.join(CaseHeader.model_fields)}"
            if fault["type"] == "extra_forbidden"
            else ""
        )
        raise UsageError(f"{where}: {fault['msg']}{known}") from error
    return Case(path, header, text[front.end() :].strip() + "\n")


def case_text(header: CaseHeader, answer: str, note: str = "") -> str:
    """Return the text of a case's file."""
    plain = header.model_dump(mode="json", exclude_defaults=True)
    front = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=110)
    return (
        f"---\n{f'# {note}' + chr(10) if note else ''}{front}---\n\n{answer.strip()}\n"
    )


async def rehearse_cases(
    script: LoadedScript, cases: Sequence[Case]
) -> list[CaseOutcome]:
    """Evaluate the cases without a model.

    Raises:
        UsageError: a case states no facts, and there is no perfect one.
        EvalScriptError: the script failed.
    """
    truth: set[tuple[str, str | None]] | None = None
    outcomes = []
    for case in cases:
        if case.header.facts is None and truth is None and case.name != PERFECT:
            raise UsageError(
                f"{case.path} has no facts: give some, or write {case.path.parent / 'perfect.md'}"
            )
        done = await rehearsed(script, world_of(case, truth))
        if case.name == PERFECT:
            truth = {(asked.claim, asked.page) for asked in done.requests.claims}
        outcomes.append(compared(case, done))
    return outcomes


def world_of(case: Case, truth: set[tuple[str, str | None]] | None) -> World:
    """Return the world of a case.

    Args:
        truth: claims with their pages that hold where the case states no facts; ``None`` if all do.
    """
    header = case.header

    def holds(asked: Asked) -> bool:
        if header.facts is not None:
            return any(_matches(fact, asked) for fact in header.facts)
        return truth is None or (asked.claim, asked.page) in truth

    def fill(template: type[BaseModel], name: str) -> BaseModel:
        given = header.extract.get(name)
        own = given if isinstance(given, dict) else header.extract
        values = {
            field: value
            for field, value in own.items()
            if field in template.model_fields
        }
        try:
            return template.model_validate(
                empty_instance(template).model_dump(warnings=False) | values
            )
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"]))
            raise UsageError(f"{case.path}, extract.{where}: {fault['msg']}") from error

    def has_page(url: str) -> bool:
        return not any(fnmatchcase(url, pattern) for pattern in header.missing_pages)

    return World(case.answer, holds, fill, has_page)


def _matches(fact: Fact | str, asked: Asked) -> bool:
    if isinstance(fact, str):
        return fnmatchcase(asked.claim, fact)
    return fnmatchcase(asked.claim, fact.claim) and fnmatchcase(
        asked.page or "answer", fact.page
    )


def compared(case: Case, done: Rehearsed) -> CaseOutcome:
    """Return the outcome of a case, with the first difference from its expectation."""
    header, statuses = case.header, done.statuses()
    differs = None
    for leaf, expected in header.leaves.items():
        if statuses.get(leaf) != expected:
            differs = (
                f"{leaf}: expected {expected}, got {statuses.get(leaf, 'no such leaf')}"
            )
            break
    else:
        if abs(done.score - header.expect) > TOLERANCE:
            short = [
                leaf.id
                for leaf in done.tree.leaves()
                if leaf.verdict.status != "passed"
            ]
            differs = (
                f"first leaf that did not pass: {short[0]}"
                if short
                else "every leaf passed"
            )
    return CaseOutcome(case.name, header.expect, done.score, differs, done)


# Variants


@dataclass(frozen=True)
class Variant:
    """A variant of the perfect answer."""

    name: str
    about: str
    extract: dict[str, Any]
    answer: str


def variants(perfect: Case, templates: Mapping[str, type[BaseModel]]) -> list[Variant]:
    """Return the variants of a perfect answer: a missing item, wrong values and pages, no citations."""
    made = [
        *_without_items(perfect, templates),
        *_wrong_values(perfect, templates),
        _changed_urls(
            perfect, "wrong_page", "every citation leads to another page", _WRONG_PAGE
        ),
        _changed_urls(perfect, "no_citations", "the same without links", None),
        Variant(
            "other_formatting",
            "the same, formatted otherwise",
            perfect.header.extract,
            _plain(perfect.answer),
        ),
    ]
    return [
        each
        for each in made
        if each.extract != perfect.header.extract or each.name == "other_formatting"
    ]


async def written_cases(
    script: LoadedScript, perfect: Case, folder: Path
) -> dict[Path, str]:
    """Return the files of the variants that are not there yet, with the scores that they get now."""
    done = await rehearsed(script, world_of(perfect, None))
    truth = {(asked.claim, asked.page) for asked in done.requests.claims}
    files = {}
    for variant in variants(perfect, done.requests.templates):
        target = folder / f"{variant.name}.md"
        if target.exists():
            continue
        header = CaseHeader(
            expect=0, extract=variant.extract, facts=perfect.header.facts
        )
        draft = Case(target, header, variant.answer)
        got = await rehearsed(script, world_of(draft, truth))
        header = header.model_copy(update={"expect": round(got.score, 4)})
        note = f"{variant.about}; expect is what the rubric gives today: check that it is what you want"
        files[target] = case_text(header, variant.answer, note)
    return files


def _without_items(
    perfect: Case, templates: Mapping[str, type[BaseModel]]
) -> Iterator[Variant]:
    for name, template in templates.items():
        for path in lists_of(template, name):
            names = path.split(".")[1:]
            extract = deepcopy(perfect.header.extract)
            found = _at(extract, name, names)
            if isinstance(found, list) and found:
                gone = found.pop()
                answer = _without_lines(
                    perfect.answer, [text for text in _texts(gone) if len(text) > 3]
                )
                number = len(found) + 1
                yield Variant(
                    f"without_{names[-1]}_{number}",
                    f"without item {number} of {names[-1]}",
                    extract,
                    answer,
                )


def _wrong_values(
    perfect: Case, templates: Mapping[str, type[BaseModel]]
) -> Iterator[Variant]:
    for name, template in templates.items():
        for path in fields_of(template, name):
            names = path.split(".")[1:]
            extract = deepcopy(perfect.header.extract)
            holder = _at(extract, name, names[:-1])
            holder = holder[0] if isinstance(holder, list) and holder else holder
            value = holder.get(names[-1]) if isinstance(holder, dict) else None
            if value is None or isinstance(value, list | dict) or value == "":
                continue
            holder[names[-1]] = wrong = _wrong(value)
            answer = re.sub(
                rf"(?<!\w){re.escape(str(value))}(?!\w)", str(wrong), perfect.answer
            )
            yield Variant(
                f"wrong_{'_'.join(names)}",
                f"a wrong {'.'.join(names)}",
                extract,
                answer,
            )


def _at(extract: dict[str, Any], extraction: str, names: Sequence[str]) -> Any:
    """Return what an extraction's path leads to; of lists on the way, the first item's."""
    found: Any = (
        extract[extraction] if isinstance(extract.get(extraction), dict) else extract
    )
    for name in names:
        found = found[0] if isinstance(found, list) and found else found
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _wrong(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + 1
    digits = re.sub(r"\d", lambda found: str((int(found[0]) + 3) % 10), str(value))
    return digits if digits != value else f"Not {value}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
    elif value is not None:
        yield str(value)


def _without_lines(answer: str, texts: Sequence[str]) -> str:
    lines = [
        line for line in answer.splitlines() if not any(text in line for text in texts)
    ]
    return "\n".join(lines)


def _changed_urls(perfect: Case, name: str, about: str, page: str | None) -> Variant:
    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: change(each) for key, each in value.items()}
        if isinstance(value, list):
            return [new for each in value if (new := change(each)) is not None]
        is_url = isinstance(value, str) and _URL.fullmatch(value)
        return page if is_url else value

    answer = perfect.answer
    if page is None:
        answer = _URL.sub("", _LINK.sub(r"\1", answer))
    else:
        answer = _URL.sub(page, answer)
    return Variant(name, about, change(perfect.header.extract), answer)


def _plain(answer: str) -> str:
    """Return an answer without headings, emphasis and bullets; links stay."""
    lines = [
        re.sub(r"^\s*(?:#+|[-*+]|\d+\.)\s+", "", line) for line in answer.splitlines()
    ]
    return "\n".join(line.replace("**", "").replace("__", "") for line in lines)
