"""``check`` on 30 invented reports in all forms of citation, with planted errors.

    uv run --group dev python benchmarks/checked_reports.py

It prints how many pairs of statement and source are found, whether precision and coverage are exact
with a judge that is always right, and how many planted errors the hints find without a judge.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mind2web2.capture.models import CapturedPage, CaptureRecord, Trouble
from mind2web2.judge.admission import DualSemaphore
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import Judgment, JudgmentStore, judgment_key
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.library import PageLibrary
from mind2web2.plugins.check.checking import TASK, Check
from mind2web2.plugins.check.hints import hints_of
from mind2web2.plugins.check.sources import source_page
from mind2web2.plugins.check.statements import ReadReport
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.answer import RunParts
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work

REPORTS, STATEMENTS, SEED = 30, 20, 7
FIRST = [
    "Ardan",
    "Belor",
    "Corvin",
    "Delmar",
    "Estrid",
    "Fenwick",
    "Garrow",
    "Hollin",
    "Ister",
    "Jorun",
    "Kelda",
    "Lomax",
    "Merrin",
    "Norrick",
]
LAST = [
    "Ashby",
    "Brandt",
    "Calloway",
    "Dunmore",
    "Eckhart",
    "Farrow",
    "Grieve",
    "Halden",
    "Ingram",
    "Jessop",
    "Kessel",
    "Lindqvist",
]
PLACE = [
    "Aldermoor",
    "Brackwater",
    "Cinderford",
    "Dunholm",
    "Elmsgate",
    "Farrowdale",
    "Glenmara",
    "Hexford",
    "Ivybridge",
    "Juniper",
    "Kestrel",
]
KIND = ["Dam", "Bridge", "Mill", "Lighthouse", "Tower", "Library", "Harbour", "Museum"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
ERRORS = [
    "name",
    "number",
    "date",
    "negation",
    "exchanged",
    "invented",
    "wall",
    "compound",
]


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
            f"The {self.name} opened on {self.day} {self.year}",
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


def places(draw: random.Random) -> list[Place]:
    """Return the places of a report."""
    found = []
    for number, place in enumerate(PLACE[: STATEMENTS // 2]):
        kind = draw.choice(KIND)
        found.append(
            Place(
                f"{place} {kind}",
                f"https://{place.lower()}{number}.example/{kind.lower()}_(main)",
                draw.randint(1820, 1990),
                f"{draw.randint(1, 28)} {draw.choice(MONTHS)}",
                f"{draw.randint(10, 300)}.{draw.randint(1, 9)}",
                f"{draw.choice(FIRST)} {draw.choice(LAST)}",
                str(draw.randint(2, 900)),
            )
        )
    return found


def said(draw: random.Random, all_places: Sequence[Place], number: int) -> Said:
    """Return a statement, every other one with an error."""
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
    return _wrong(draw, error, place, other, fact, number)


def _wrong(
    draw: random.Random, error: str, place: Place, other: Place, fact: str, number: int
) -> Said:
    opened, height, designed, cost = place.facts()
    sources = [place.url]
    if error == "name":
        fact = designed.replace(place.builder, f"{draw.choice(FIRST)} {draw.choice(LAST)}son")
    elif error == "number":
        fact = height.replace(place.metres, str(float(place.metres) + 117))
    elif error == "date":
        fact = opened.replace(str(place.year), str(place.year + 9))
    elif error == "negation":
        fact = designed.replace("designed", "never designed")
    elif error == "exchanged":
        sources = [other.url]
    elif error == "invented":
        sources = [f"https://no-host-{number}.example/page"]
    elif error == "wall":
        sources = [f"https://wall-{number}.example/page"]
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
    """Return a statement's letters and digits, to compare it however it is cut."""
    return re.sub(r"[^a-z0-9]+", "", text.split("|", maxsplit=1)[0].lower())


def pairs_found(read: ReadReport, statements: list[Said]) -> tuple[int, int, int]:
    """Return the pairs that are right, wanted and found."""
    wanted = Counter((plain(each.text), url) for each in statements for url in each.sources)
    found = Counter((plain(each.plain), url) for each in read.statements for url in each.sources)
    return (wanted & found).total(), wanted.total(), found.total()


class RightJudge(CachingJudge):
    """A judge that knows the truth about each claim and page."""

    def __init__(self, store: JudgmentStore, statements: list[Said], pages: dict[str, str]) -> None:
        super().__init__(JudgeSpec("right", provider="replay"), None, store)
        self._claims = {plain(each.text): each.claims for each in statements}
        self._pages = pages

    async def judgment(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        limits: AnswerLimits,  # noqa: ARG002
    ) -> Judgment:
        """Return the true reply to a question."""
        if subject.purpose == "extract":
            reply = self._split(request)
        else:
            reply = self._verdict(subject.claim or "", subject.page or "")
        return Judgment(
            key=judgment_key(request, subject.trial),
            endpoint="right",
            model=request.model,
            outcome="reply",
            text=json.dumps(reply),
            created="2026-01-01T00:00:00+00:00",
            task_id=source[0],
            answer_name=source[1],
            purpose=subject.purpose,
            node=subject.node,
            claim=subject.claim,
            page=subject.page,
            trial=subject.trial,
        )

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


def store_pages(cache: CacheFileSys, statements: list[Said], pages: dict[str, str]) -> None:
    """Store the pages that a report cites, walls and failures too."""
    for url in {url for each in statements for url in each.sources}:
        text = pages.get(url, "")
        troubles = (
            (Trouble(kind="login_wall", detail="asks for a login"),) if "wall-" in url else ()
        )
        is_missing = "no-host-" in url
        record = CaptureRecord(
            requested_url=url,
            final_url=url,
            kind=None if is_missing else "web",
            captured_at="2026-01-01T00:00:00+00:00",
            failure=f"there is no host {url.split('/')[2]}" if is_missing else None,
            troubles=troubles,
        )
        shown = "Please log in to go on reading." if troubles else text
        cache.put_capture(CapturedPage(record, text=None if is_missing else shown))
    cache.save()


async def judged(check: Check, judge: RightJudge) -> None:
    """Evaluate a report."""
    run = RunParts(
        judge=judge,
        library=PageLibrary(),
        limits=DualSemaphore(asyncio.Semaphore(8), asyncio.Semaphore(8)),
        reuse=False,
        answer_timeout_s=None,
    )
    paths = check.paths
    folders = RunFolders(check.name, paths.cache_root, paths.eval_results_root)
    await evaluate_work(
        select_work(paths, check.name), folders, run, Concurrency(1, 1), RunProgress()
    )


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


def hinted(check: Check, statements: list[Said], cache: CacheFileSys) -> Iterator[tuple[str, bool]]:
    """Yield the error of each statement with a source, and whether a hint points at it."""
    sources = {url for each in check.read.statements for url in each.sources}
    hints = hints_of(check.read, {url: source_page(cache, url) for url in sources})
    of_source = {hint.source for hint in hints if hint.statement is None}
    numbers = {hint.statement for hint in hints if hint.kind != "no source"}
    by_text = {plain(each.text): each for each in statements}
    for number, statement in enumerate(check.read.statements):
        original = by_text.get(plain(statement.plain))
        if original is not None and statement.sources:
            yield (
                original.error,
                number in numbers or not of_source.isdisjoint(statement.sources),
            )


def main() -> int:
    """Print the figures and return the exit status."""
    draw = random.Random(SEED)
    right = wanted = found = exact = 0
    planted: Counter[tuple[str, bool]] = Counter()
    with tempfile.TemporaryDirectory() as work:
        for number in range(REPORTS):
            all_places = places(draw)
            pages = {place.url: place.page() for place in all_places}
            # A statement that is said twice cannot be told from its other one.
            by_text: dict[str, Said] = {}
            while len(by_text) < STATEMENTS:
                one = said(draw, all_places, len(by_text))
                by_text.setdefault(one.text, one)
            statements = list(by_text.values())
            path = Path(work) / f"report_{number}.md"
            path.write_text(FORMS[number % len(FORMS)](statements), encoding="utf-8")
            check = Check.of(str(path), Path(work) / "checks")
            check.write()
            counts = pairs_found(check.read, statements)
            right, wanted, found = (
                right + counts[0],
                wanted + counts[1],
                found + counts[2],
            )
            if counts[0] != counts[1] or counts[2] != counts[1]:
                sys.stdout.write(f"{FORMS[number % len(FORMS)].__name__}: {counts}\n")
            cache = CacheFileSys(check.paths.cache_root / check.name / TASK)
            store_pages(cache, statements, pages)
            with JudgmentStore(None) as store:
                asyncio.run(judged(check, RightJudge(store, statements, pages)))
            exact += is_exact(check, statements)
            planted.update(hinted(check, statements, cache))
    hits = sum(count for (error, is_hinted), count in planted.items() if error and is_hinted)
    errors = sum(count for (error, _), count in planted.items() if error)
    false_alarms = planted["", True]
    sys.stdout.write(
        f"pairs of statement and source: {right} of {wanted} found ({right / wanted:.1%}), "
        f"{found - right} invented\n"
        f"reports with exact precision and coverage: {exact} of {REPORTS}\n"
        f"planted errors that a hint finds: {hits} of {errors} ({hits / errors:.0%}); "
        f"false alarms: {false_alarms} of {hits + false_alarms} hinted statements "
        f"({false_alarms / (hits + false_alarms):.0%})\n"
    )
    for error in ERRORS:
        sys.stdout.write(
            f"  {error}: {planted[error, True]} of {planted[error, True] + planted[error, False]}\n"
        )
    return 0 if right == wanted == found and exact == REPORTS else 1


if __name__ == "__main__":
    sys.exit(main())
