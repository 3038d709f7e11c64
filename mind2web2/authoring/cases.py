"""Cases of a task's author: answers with the score that they deserve, and variants of a perfect one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mind2web2.authoring.plausible import fields_of, lists_of, model_of
from mind2web2.authoring.rehearsal_run import (
    Asked,
    LoadedScript,
    Rehearsed,
    World,
    WorldTimeoutError,
    rehearsed,
)
from mind2web2.errors import EvalScriptError, UsageError
from mind2web2.results.answers import uniform_text
from mind2web2.scripts.yaml_lines import (
    Owner,
    Place,
    Problem,
    YamlFileError,
    field_name,
    line_of,
    nearest,
    parsed_yaml,
    problems_of,
    value_fault,
)
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import natural_key
from mind2web2.verification.stand_ins import empty_instance

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

    claim: str = Field(description="a pattern of claims", examples=["*Mill Museum*"])
    page: str = Field("*", description="a pattern of addresses")


class CaseHeader(BaseModel):
    """The head of a case, between lines of ``---`` before the answer's text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    expect: float = Field(
        ge=0, le=1, description="the score that the answer deserves", examples=[1.0]
    )
    leaves: dict[str, Literal["passed", "failed", "skipped"]] = Field(
        default_factory=dict,
        description="verdicts of single leaves, where they matter",
        examples=[{"museum_founded": "failed"}],
    )
    extract: dict[str, Any] = Field(
        default_factory=dict,
        description="what the judge reads from the answer, by field (of scripts: by "
        "extraction or by field)",
        examples=[{"museum": {"name": "Mill Museum"}}],
    )
    facts: tuple[Fact | str, ...] | None = Field(
        None,
        description="the claims that hold; by default those that the perfect answer's "
        "evaluation asks about",
        examples=[["*Mill Museum*"]],
    )
    missing_pages: tuple[str, ...] = Field(
        (),
        description="patterns of pages that are not there",
        examples=[["https://gone.example/*"]],
    )


class CaseError(UsageError):
    """A case's file is wrong; the text names file, line and field."""


@dataclass(frozen=True)
class Case:
    """An answer with its header.

    Args:
        lines: the line of each part of the header.
    """

    path: Path
    header: CaseHeader
    answer: str
    lines: Mapping[Place, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.path.stem

    def error(self, place: Place, message: str) -> CaseError:
        """Return the error of a part of the header."""
        return _case_error(self.path, self.lines, place, message)


@dataclass(frozen=True)
class BrokenCase:
    """A case that could not be rehearsed.

    Args:
        expected: the score that the file asks for, ``None`` where it cannot be read.
    """

    path: Path
    reason: str
    expected: float | None = None

    @property
    def name(self) -> str:
        """Return the file's name without its ending."""
        return self.path.stem


@dataclass(frozen=True)
class CaseOutcome:
    """The outcome of a case; ``differs`` says where it is not as expected."""

    name: str
    expected: float
    got: float
    differs: str | None
    rehearsed: Rehearsed


def read_cases(folder: Path) -> list[Case | BrokenCase]:
    """Return a task's cases, the perfect one first."""
    paths = sorted(folder.glob("*.md"), key=lambda path: natural_key(path.stem))
    paths.sort(key=lambda path: path.stem != PERFECT)
    cases: list[Case | BrokenCase] = []
    for path in paths:
        try:
            cases.append(read_case(path))
        except CaseError as error:
            cases.append(BrokenCase(path, str(error)))
    return cases


def read_case(path: Path) -> Case:
    """Return one case. Raises CaseError: the file is wrong."""
    text = uniform_text(read_regular_file(path).decode("utf-8", "replace"))
    front = _FRONT.match(text)
    if front is None:
        raise CaseError(f"{path} has no header: begin it with ---, expect: 1.0 and ---")
    try:
        # The line of the header's opening counts.
        plain, lines = parsed_yaml(b"\n" + front[1].encode(), path)
    except YamlFileError as error:
        raise CaseError(str(error)) from error
    try:
        header = CaseHeader.model_validate({} if plain is None else plain)
    except ValidationError as error:
        problems = problems_of(error, lines, _owner_of)
        # A misspelled name explains why another one is missing.
        problems.sort(key=lambda problem: not problem.message.startswith("unknown"))
        raise CaseError(f"{path}, {problems[0]}") from error
    return Case(path, header, text[front.end() :].strip() + "\n", lines)


def _owner_of(place: Place) -> Owner:
    is_fact = len(place) > 1 and place[0] == "facts"
    model = Fact if is_fact else CaseHeader
    name = place[-1] if place else ""
    if not isinstance(name, str):
        # A position in a list.
        name = ""
    return model, name


def _case_error(path: Path, lines: Mapping[Place, int], place: Place, message: str) -> CaseError:
    problem = Problem(line_of(lines, place), field_name(place), message)
    return CaseError(f"{path}, {problem}")


def case_text(header: CaseHeader, answer: str, note: str = "") -> str:
    """Return the text of a case's file."""
    plain = header.model_dump(mode="json", exclude_defaults=True)
    front = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=110)
    comment = f"# {note}\n" if note else ""
    return f"---\n{comment}{front}---\n\n{answer.strip()}\n"


# Claims that hold, with their pages.
Truth = frozenset[tuple[str, str | None]]


async def rehearse_cases(
    script: LoadedScript, cases: Sequence[Case | BrokenCase]
) -> list[CaseOutcome | BrokenCase]:
    """Evaluate the cases without a model, each whatever becomes of the others.

    Raises:
        WorldTimeoutError: the script did not end in time.
    """
    runs = _CaseRuns(script)
    outcomes: list[CaseOutcome | BrokenCase] = []
    for case in cases:
        if isinstance(case, BrokenCase):
            outcomes.append(case)
            continue
        try:
            outcomes.append(compared(case, await runs.run(case)))
        except WorldTimeoutError:
            raise
        except (CaseError, EvalScriptError) as error:
            outcomes.append(BrokenCase(case.path, str(error), case.header.expect))
    return outcomes


class _CaseRuns:
    """The evaluations of a task's cases; the perfect one comes first, and says what holds in the others."""

    def __init__(self, script: LoadedScript) -> None:
        self._script = script
        self._truth: Truth | None = None
        self.templates: dict[str, type[BaseModel]] = {}

    async def run(self, case: Case) -> Rehearsed:
        """Evaluate a case.

        Raises:
            CaseError: the case's header does not fit the script.
            EvalScriptError: the script failed.
        """
        if case.header.facts is None and self._truth is None and case.name != PERFECT:
            perfect = case.path.parent / f"{PERFECT}.md"
            raise CaseError(f"{case.path} has no facts: give some, or a sound {perfect}")
        misfits: list[CaseError] = []
        try:
            world = _world_of(case, self._truth, misfits)
            done = await rehearsed(self._script, world)
        except EvalScriptError:
            if misfits:
                raise misfits[0] from None
            raise
        self.templates |= done.requests.templates
        for error in (*misfits, *_unknown_names(case, self.templates)):
            raise error
        if case.name == PERFECT:
            self._truth = done.asked()
        return done


def _world_of(case: Case, truth: Truth | None, misfits: list[CaseError]) -> World:
    header = case.header

    def holds(asked: Asked) -> bool:
        if header.facts is not None:
            return any(_matches(fact, asked) for fact in header.facts)
        return truth is None or (asked.claim, asked.page) in truth

    def fill(template: type[BaseModel], name: str) -> BaseModel:
        above, own = _given(header.extract, name)
        empty = empty_instance(template)
        values = empty.model_dump(warnings=False)
        for key, each in own.items():
            if key in template.model_fields:
                values[key] = each
        try:
            return template.model_validate(values)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ("extract", *above, *fault["loc"])
            misfits.append(case.error(place, value_fault(fault)))
            return empty

    def has_page(url: str) -> bool:
        return not any(fnmatchcase(url, pattern) for pattern in header.missing_pages)

    return World(case.answer, holds, fill, has_page)


def _given(extract: Mapping[str, Any], extraction: str) -> tuple[Place, dict[str, Any]]:
    """Return the values for an extraction, behind the keys that lead to them."""
    own = extract.get(extraction)
    if isinstance(own, dict):
        return ((extraction,), own)
    return ((), dict(extract))


def _unknown_names(case: Case, templates: Mapping[str, type[BaseModel]]) -> Iterator[CaseError]:
    """Yield an error for each name under ``extract`` that no extraction reads."""
    extract = case.header.extract
    models: dict[str, type[BaseModel] | None] = {}
    for name, template in templates.items():
        if _given(extract, name)[0]:
            models[name] = template
        else:
            models |= {key: model_of(template, key) for key in template.model_fields}
    yield from _unknown_in(case, ("extract",), extract, models)


def _unknown_in(
    case: Case,
    place: Place,
    values: Mapping[str, Any],
    models: Mapping[str, type[BaseModel] | None],
) -> Iterator[CaseError]:
    for name, value in values.items():
        own = (*place, name)
        if name not in models:
            yield case.error(own, f"no field '{name}'{nearest(name, models)}")
            continue
        model = models[name]
        if model is None:
            continue
        below = {key: model_of(model, key) for key in model.model_fields}
        if isinstance(value, dict):
            yield from _unknown_in(case, own, value, below)
        if not isinstance(value, list):
            continue
        for position, item in enumerate(value):
            if isinstance(item, dict):
                yield from _unknown_in(case, (*own, position), item, below)


def _matches(fact: Fact | str, asked: Asked) -> bool:
    if isinstance(fact, str):
        return fnmatchcase(asked.claim, fact)
    if not fnmatchcase(asked.claim, fact.claim):
        return False
    page = asked.page or "answer"
    return fnmatchcase(page, fact.page)


def compared(case: Case, done: Rehearsed) -> CaseOutcome:
    """Return the outcome of a case, with the first difference from its expectation."""
    header = case.header
    differs = _first_difference(header, done)
    return CaseOutcome(case.name, header.expect, done.score, differs, done)


def _first_difference(header: CaseHeader, done: Rehearsed) -> str | None:
    statuses = done.statuses()
    for leaf, expected in header.leaves.items():
        if leaf not in statuses:
            return f"leaves: no leaf '{leaf}'{nearest(leaf, statuses)}"
        if statuses[leaf] != expected:
            return f"{leaf}: expected {expected}, got {statuses[leaf]}"
    if abs(done.score - header.expect) <= TOLERANCE:
        return None
    for name, status in statuses.items():
        if status != "passed":
            return f"first leaf that did not pass: {name}"
    return "every leaf passed"


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
        _changed_urls(perfect, "wrong_page", "every citation leads to another page", _WRONG_PAGE),
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


async def written_cases(script: LoadedScript, perfect: Case, folder: Path) -> dict[Path, str]:
    """Return the files of the variants that are not there yet, with the scores that they get now."""
    runs = _CaseRuns(script)
    await runs.run(perfect)
    files = {}
    for variant in variants(perfect, runs.templates):
        target = folder / f"{variant.name}.md"
        if target.exists():
            continue
        header = CaseHeader(expect=0, extract=variant.extract, facts=perfect.header.facts)
        draft = Case(target, header, variant.answer)
        got = await runs.run(draft)
        header = header.model_copy(update={"expect": round(got.score, 4)})
        note = f"{variant.about}; expect is what the rubric gives today: check that it is what you want"
        files[target] = case_text(header, variant.answer, note)
    return files


def _without_items(perfect: Case, templates: Mapping[str, type[BaseModel]]) -> Iterator[Variant]:
    for name, template in templates.items():
        for path in lists_of(template, name):
            names = path.split(".")[1:]
            extract = deepcopy(perfect.header.extract)
            found = _at(extract, name, names)
            if isinstance(found, list) and found:
                gone = found.pop()
                # Shorter texts occur in other lines as well.
                texts = [text for text in _texts(gone) if len(text) > 3]
                answer = _without_lines(perfect.answer, texts)
                number = len(found) + 1
                yield Variant(
                    f"without_{names[-1]}_{number}",
                    f"without item {number} of {names[-1]}",
                    extract,
                    answer,
                )


def _wrong_values(perfect: Case, templates: Mapping[str, type[BaseModel]]) -> Iterator[Variant]:
    for name, template in templates.items():
        for path in fields_of(template, name):
            names = path.split(".")[1:]
            extract = deepcopy(perfect.header.extract)
            holder = _at(extract, name, names[:-1])
            holder = holder[0] if isinstance(holder, list) and holder else holder
            if isinstance(holder, dict):
                value = holder.get(names[-1])
            else:
                value = None
            if value is None or isinstance(value, list | dict) or value == "":
                continue
            wrong = _wrong(value)
            holder[names[-1]] = wrong
            whole_word = rf"(?<!\w){re.escape(str(value))}(?!\w)"
            answer = re.sub(whole_word, str(wrong), perfect.answer)
            yield Variant(
                f"wrong_{'_'.join(names)}",
                f"a wrong {'.'.join(names)}",
                extract,
                answer,
            )


def _at(extract: dict[str, Any], extraction: str, names: Sequence[str]) -> Any:
    """Return what an extraction's path leads to; of lists on the way, the first item's."""
    own = extract.get(extraction)
    found: Any = own if isinstance(own, dict) else extract
    for name in names:
        if isinstance(found, list) and found:
            found = found[0]
        if not isinstance(found, dict):
            return None
        found = found.get(name)
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
    kept = []
    for line in answer.splitlines():
        if not any(text in line for text in texts):
            kept.append(line)
    return "\n".join(kept)


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
    lines = [re.sub(r"^\s*(?:#+|[-*+]|\d+\.)\s+", "", line) for line in answer.splitlines()]
    return "\n".join(line.replace("**", "").replace("__", "") for line in lines)
