"""``check`` on 30 invented reports in all forms of citation, with planted errors.

    PYTHONPATH=tests:examples uv run --group dev python benchmarks/checked_reports.py [FIRST END]

It prints how many pairs of statement and source are found, whether precision and coverage are exact
with a judge that is always right, and how many planted errors the hints find without a judge. The
pages are on a local server, and a browser captures them.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from invented.world import World, long_date, slug
from record_judgments import RecordingJudge, record
from servers.local_http import Answer, LocalHttp, Request

from mind2web2.cli.address_crawl import AddressCrawl
from mind2web2.cli.console import PlainConsole
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.runs.settings import RunSettings
from mind2web2_check.checking import Check
from mind2web2_check.hints import hints_of
from mind2web2_check.sources import Capturing
from mind2web2_check.statements import ReadReport

REPORTS, STATEMENTS, SEED = 30, 20, 7
KIND = ("Dam", "Bridge", "Mill", "Lighthouse", "Tower", "Library", "Harbour", "Museum")
ERRORS = (
    "name",
    "number",
    "date",
    "negation",
    "exchanged",
    "invented",
    "wall",
    "compound",
)
WALL = "Please log in to go on reading."


@dataclass(frozen=True)
class Place:
    """Something with a page of its own."""

    name: str
    url: str
    year: int
    day: str
    metres: str
    builder: str
    cost: str

    def facts(self) -> list[str]:
        """Return its facts, a sentence each."""
        return [
            f"The {self.name} opened on {self.day}",
            f"The {self.name} is {self.metres} metres high",
            f"{self.builder} designed the {self.name}",
            f"Building the {self.name} cost {self.cost} million crowns",
        ]

    def page(self) -> str:
        """Return the text of its page."""
        return ". ".join(
            [f"About the {self.name}", *self.facts(), "Visitors are welcome in summer."]
        )


@dataclass
class Said:
    """A statement of a report, with what is wrong with it."""

    text: str
    claims: list[str]
    sources: list[str]
    error: str = ""
    truths: list[bool] = field(default_factory=list)


def places(world: World, site: str) -> list[Place]:
    """Return the places of a report, with their pages on a site."""
    found = []
    for _ in range(STATEMENTS // 2):
        kind, town, opened = world.pick(*KIND), world.place(), world.day(1820, 1990)
        found.append(
            Place(
                f"{town} {kind}",
                f"{site}/{slug(town)}/{kind.lower()}_(main)",
                opened.year,
                long_date(opened),
                f"{world.number(10, 300)}.{world.number(1, 9)}",
                world.person(),
                str(world.number(2, 900)),
            )
        )
    return found


def said(world: World, all_places: Sequence[Place], number: int) -> Said:
    """Return a statement, every other one with an error."""
    draw = world.draw
    place = all_places[number % len(all_places)]
    other = all_places[(number + 3) % len(all_places)]
    facts = place.facts()
    fact = draw.choice(facts)
    if draw.random() < 0.5:
        if draw.random() < 0.1:
            return Said(f"{fact}.", [f"{fact}."], [])
        sources = [place.url] if draw.random() < 0.7 else [other.url, place.url]
        return Said(f"{fact}.", [f"{fact}."], sources, "", [True])
    error = ERRORS[number % len(ERRORS)]
    return _wrong(world, error, place, other, fact, number)


def _wrong(world: World, error: str, place: Place, other: Place, fact: str, number: int) -> Said:
    opened, height, designed, cost = place.facts()
    sources = [place.url]
    if error == "name":
        fact = designed.replace(place.builder, world.person())
    elif error == "number":
        fact = height.replace(place.metres, str(float(place.metres) + 117))
    elif error == "date":
        fact = opened.replace(str(place.year), str(place.year + 9))
    elif error == "negation":
        fact = designed.replace("designed", "never designed")
    elif error == "exchanged":
        sources = [other.url]
    elif error == "invented":
        sources = [f"https://no-host-{number}.invalid/page"]
    elif error == "wall":
        sources = [place.url.replace("_(main)", f"_wall-{number}")]
    elif error == "compound":
        wrong = cost.replace(place.cost, str(int(place.cost) + 1234))
        text = f"{opened}, and {wrong[0].lower()}{wrong[1:]}."
        return Said(text, [f"{opened}.", f"{wrong}."], sources, error, [True, False])
    return Said(f"{fact}.", [f"{fact}."], sources, error, [False])


# The forms of citation: each writes statements with their sources, and the list at the end.
Form = Callable[[list[Said]], str]


def _numbered(
    statements: list[Said],
    mark: Callable[[list[int]], str],
    entry: str,
    before_stop: bool,
) -> str:
    urls = list(dict.fromkeys(url for each in statements for url in each.sources))
    lines = []
    for each in statements:
        numbers = [urls.index(url) + 1 for url in each.sources]
        shown = mark(numbers) if numbers else ""
        lines.append(f"{each.text[:-1]}{shown}." if before_stop else f"{each.text}{shown}")
    entries = "\n".join(entry.format(n=number, url=url) for number, url in enumerate(urls, start=1))
    return _paragraphs(lines) + "\n\n## References\n\n" + entries + "\n"


def _paragraphs(lines: list[str]) -> str:
    parts = [" ".join(lines[start : start + 4]) for start in range(0, len(lines), 4)]
    return "# A report\n\nI'll look for that.\n\n## Findings\n\n" + "\n\n".join(parts)


def _linked(each: Said, link: Callable[[int, str], str], joined: str) -> str:
    links = joined.join(link(number, url) for number, url in enumerate(each.sources, start=1))
    return f"{each.text[:-1]} {links}." if links else each.text


def links(statements: list[Said]) -> str:
    """Return a report with links."""
    return _paragraphs(
        [
            _linked(each, lambda n, url: f"([page {'abc'[n - 1]}](<{url}>))", " ")
            for each in statements
        ]
    )


def double_brackets(statements: list[Said]) -> str:
    """Return a report with marks that are links."""
    return _paragraphs(
        [_linked(each, lambda n, url: f"[[{n}]]({url})", ", ") for each in statements]
    )


def sources_by_name(statements: list[Said]) -> str:
    """Return a report with marks in another language."""
    return _paragraphs(
        [_linked(each, lambda n, url: f"[来源{n}]({url})", "") for each in statements]
    )


def bare(statements: list[Said]) -> str:
    """Return a report with bare addresses."""
    return _paragraphs([_linked(each, lambda _, url: f"({url})", " ") for each in statements])


def table(statements: list[Said]) -> str:
    """Return a report that is a table with a column of sources."""
    urls = list(dict.fromkeys(url for each in statements for url in each.sources))
    rows = []
    for each in statements:
        numbers = ", ".join(str(urls.index(url) + 1) for url in each.sources)
        rows.append(f"| {each.text} | yes | {numbers} |")
    entries = "\n".join(f"{number}. Title, {url}" for number, url in enumerate(urls, start=1))
    return (
        "| Finding | Known | Source |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n\nWorks cited\n\n"
        + entries
    )


def brackets(statements: list[Said]) -> str:
    """Return a report with marks before the full stop."""
    return _numbered(
        statements,
        lambda ns: " " + "".join(f"[{n}]" for n in ns),
        "[{n}] {url} - A title",
        True,
    )


def after_stop(statements: list[Said]) -> str:
    """Return a report with marks behind the full stop."""
    return _numbered(
        statements,
        lambda ns: f" [{', '.join(map(str, ns))}]",
        "{n}. [A title]({url}) (background)",
        False,
    )


def footnotes(statements: list[Said]) -> str:
    """Return a report with footnotes."""
    return _numbered(
        statements,
        lambda ns: "".join(f"[^{n}]" for n in ns),
        "[^{n}]: Title, {url}",
        True,
    )


def raised(statements: list[Said]) -> str:
    """Return a report with raised numbers that an export glued to the sentence."""
    return _numbered(
        statements,
        lambda ns: ",".join(map(str, ns)),
        "{n}. Title, accessed 2025, [{url}]({url})",
        False,
    )


def export(statements: list[Said]) -> str:
    """Return a report as a document export writes it."""
    return _numbered(
        statements,
        lambda ns: " " + "".join(f"[{n}]" for n in ns),
        "[{n}] Title\n\n{url}\n\n{url}\n",
        False,
    )


FORMS: tuple[Form, ...] = (
    links,
    double_brackets,
    sources_by_name,
    bare,
    table,
    brackets,
    after_stop,
    footnotes,
    raised,
    export,
)


def plain(text: str) -> str:
    """Return a statement's letters and digits, to compare it however it is cut and shown."""
    first_cell = text.split("|", maxsplit=1)[0].removeprefix("Finding: ")
    return re.sub(r"[^a-z0-9]+", "", first_cell.lower())


def pairs_found(read: ReadReport, statements: list[Said]) -> tuple[int, int, int]:
    """Return the pairs that are right, wanted and found."""
    wanted = Counter((plain(each.text), url) for each in statements for url in each.sources)
    found = Counter((plain(each.plain), url) for each in read.statements for url in each.sources)
    return (wanted & found).total(), wanted.total(), found.total()


class RightJudge(RecordingJudge):
    """A judge that knows the truth about each claim and page."""

    def __init__(
        self, store: JudgmentStore, statements: list[Said], pages: Mapping[str, str]
    ) -> None:
        super().__init__(store, "right", "2026-01-01T00:00:00+00:00")
        self._claims = {plain(each.text): each.claims for each in statements}
        self._pages = pages

    def reply(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],  # noqa: ARG002
    ) -> Any:
        """Return the true reply to a question."""
        if subject.purpose == "extract":
            return self._split(request)
        return self._verdict(subject.claim or "", subject.page or "")

    def _split(self, request: ChatRequest) -> dict[str, Any]:
        content = request.messages[-1]["content"]
        text = "".join(part.get("text", "") for part in content if isinstance(part, dict))
        numbered = re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE)
        return {
            "statements": [
                {
                    "number": int(number),
                    "checkable": True,
                    "claims": self._claims.get(plain(said), [said]),
                }
                for number, said in numbered
            ]
        }

    def _verdict(self, claim: str, page: str) -> dict[str, Any]:
        text = self._pages.get(page, "")
        is_there = claim.rstrip(".") in text
        subject = re.search(r"the (\w+ \w+)", claim, re.IGNORECASE)
        about = subject is not None and subject[1] in text
        quote = next(
            (part for part in text.split(". ") if about and subject and subject[1] in part),
            "",
        )
        return {"reasoning": "As it is.", "result": is_there, "quote": quote}


async def capture(check: Check) -> None:
    """Capture the pages that a report cites."""
    settings = RunSettings(allow_private_network=True)
    console = PlainConsole(io.StringIO())
    capturing = Capturing(AddressCrawl(console, settings, check.pages.task_dir, ""))
    await capturing.capture(check.sources, None)


def is_exact(check: Check, statements: list[Said]) -> bool:
    """Tell whether precision and coverage are those that the planted errors give."""
    found = check.findings()
    if found is None:
        return False
    cited = [each for each in statements if each.sources]
    read = [each for each in cited if each.error not in ("invented", "wall")]
    claims = [truth for each in read for truth in each.truths]
    precision, coverage = found.figures["precision"], found.figures["coverage"]
    total = sum(len(each.claims) for each in statements)
    with_source = sum(len(each.claims) for each in cited)
    return (
        precision is not None
        and coverage is not None
        and abs(precision.value - sum(claims) / len(claims)) < 1e-9
        and abs(coverage.value - with_source / total) < 1e-9
    )


def hinted(check: Check, statements: list[Said]) -> Iterator[tuple[str, str, bool]]:
    """Yield each statement with a source, its error, and whether a hint points at it."""
    hints = hints_of(check.read, {page.source: page for page in check.source_pages()})
    of_source = {hint.source for hint in hints if hint.statement is None}
    numbers = {hint.statement for hint in hints if hint.kind != "no source"}
    by_text = {plain(each.text): each for each in statements}
    for number, statement in enumerate(check.read.statements):
        original = by_text.get(plain(statement.plain))
        if original is not None and statement.sources:
            is_hinted = number in numbers or not of_source.isdisjoint(statement.sources)
            yield statement.text, original.error, is_hinted


def site_of(pages: Mapping[str, str]) -> LocalHttp:
    """Return the server of the pages; a page behind a wall asks for a login."""

    def answer(request: Request) -> Answer:
        text = pages.get(request.path, WALL)
        body = f"<title>Page</title><p>{text}</p>".encode()
        return Answer(body, 403 if text == WALL else 200, {"Content-Type": "text/html"})

    return LocalHttp(answer)


def distinct_statements(world: World, all_places: Sequence[Place]) -> list[Said]:
    """Return the statements of a report; a sentence that is said twice would be taken for one."""
    by_text: dict[str, Said] = {}
    while len(by_text) < STATEMENTS:
        one = said(world, all_places, len(by_text))
        by_text.setdefault(one.text, one)
    return list(by_text.values())


@dataclass
class Tally:
    """The findings in the reports.

    Args:
        planted: statements by their error, and by whether a hint points at them.
    """

    right: int = 0
    wanted: int = 0
    found: int = 0
    exact: int = 0
    reports: int = 0
    planted: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def add(self, check: Check, statements: list[Said]) -> None:
        """Add a report, and name what is wrong with it."""
        right, wanted, found = pairs_found(check.read, statements)
        if not right == wanted == found:
            sys.stdout.write(f"{check.name}: {right} right pairs of {wanted}, {found} found\n")
        self.right, self.wanted = self.right + right, self.wanted + wanted
        self.found += found
        self.reports += 1
        if is_exact(check, statements):
            self.exact += 1
        else:
            sys.stdout.write(f"{check.name}: precision or coverage differs\n")
        for said, error, is_hinted in hinted(check, statements):
            self.planted[error, is_hinted] += 1
            if is_hinted and not error:
                sys.stdout.write(f"{check.name}: a hint at {said!r}\n")

    @property
    def is_right(self) -> bool:
        """Tell whether all pairs and figures are right."""
        return self.right == self.wanted == self.found and self.exact == self.reports

    def lines(self) -> Iterator[str]:
        """Yield the figures."""
        planted = self.planted
        hits = sum(count for (error, is_hinted), count in planted.items() if error and is_hinted)
        errors = sum(count for (error, _), count in planted.items() if error)
        alarms = planted["", True]
        yield (
            f"pairs of statement and source: {self.right} of {self.wanted} found "
            f"({self.right / self.wanted:.1%}), {self.found - self.right} invented"
        )
        yield f"reports with exact precision and coverage: {self.exact} of {self.reports}"
        yield (
            f"planted errors that a hint finds: {hits} of {errors} ({hits / errors:.0%}); false "
            f"alarms: {alarms} of {hits + alarms} hinted statements "
            f"({alarms / (hits + alarms):.0%})"
        )
        for error in ERRORS:
            hits = planted[error, True]
            yield f"  {error}: {hits} of {hits + planted[error, False]}"


def main(first: int = 0, end: int = REPORTS) -> int:
    """Check the reports from a number to another, print the figures and return the exit status."""
    world = World(SEED)
    tally = Tally()
    by_path: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as work, site_of(by_path) as site:
        for number in range(end):
            all_places = places(world, site.url)
            statements = distinct_statements(world, all_places)
            if number < first:
                continue
            pages = {place.url: place.page() for place in all_places}
            by_path.update((url.removeprefix(site.url), text) for url, text in pages.items())
            form = FORMS[number % len(FORMS)]
            path = Path(work) / f"{number}_{form.__name__}.md"
            path.write_text(form(statements), encoding="utf-8")
            check = Check.of(str(path), Path(work) / "checks")
            check.write()
            asyncio.run(capture(check))
            with JudgmentStore(None) as store:
                judge = RightJudge(store, statements, pages)
                results = check.project.paths.eval_results_root
                asyncio.run(record(judge, check.project.paths, check.name, results))
            tally.add(check, statements)
    sys.stdout.write("".join(f"{line}\n" for line in tally.lines()))
    return 0 if tally.is_right else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
