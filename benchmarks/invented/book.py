"""Collects pages, claims and extractions.

It gives every page the frame and the length of a real one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from invented.filler import Filler
from invented.world import World, slug
from mind2web2_trust.judge_check.labelled_set import (
    FieldKind,
    LabelledClaim,
    LabelledForm,
    LabelledPage,
)

TASK = "Collect facts on the subject, each with the page that states it."
_MENUS = (
    "Home News Visit Archive Contact",
    "Start About us Services Press Search",
    "Overview Topics Events Shop Log in",
    "Home Departments Documents Calendar Help",
)
_ASIDES = (
    "Our office answers by e-mail within {a} working days; by telephone from 9.15 to 12.45.",
    "This section was read {b} times last month. Print this page, or share it with a friend.",
    "A newsletter appears {a} times a year; {b} readers have subscribed to it.",
    "Pictures may be used for reporting if the source is named. Higher resolutions on request.",
    "Photographs by the editorial office. The map was redrawn after the {a}th revision of the "
    "survey.",
    "We use cookies that are needed to run the site. Statistics are made without personal data.",
)
_RELATED = (
    "Reports of the past years",
    "How to find us",
    "Questions and answers",
    "Frequently used forms",
    "For teachers and groups",
    "Accessibility of this site",
    "Open positions",
    "Letters from our readers",
)
# The lengths of pages in characters, from and to, and how many of a thousand pages have them.
_LENGTHS = ((5_000, 15_000), (15_000, 50_000), (50_000, 150_000), (150_000, 390_000))
_OF_A_THOUSAND = (800, 150, 35, 15)


def table(heads: Sequence[object], *rows: Sequence[object]) -> str:
    """Return a table as the text of a captured page has it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(row(*cells) for cells in lines)


def row(*cells: object) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


class Book:
    """The set that is being made."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.filler = Filler(f"filler {seed}")
        self.pages: dict[str, LabelledPage] = {}
        self.claims: list[LabelledClaim] = []
        self.forms: list[LabelledForm] = []
        self._lengths = random.Random(f"lengths {seed}")
        self._pairs: Counter[str] = Counter()

    def page(
        self,
        site: str,
        title: str,
        *blocks: str,
        url: str | None = None,
        is_first: bool = False,
        is_apart: bool = False,
        length_chars: int | None = None,
        **more: Any,
    ) -> str:
        """Add a page and return its address.

        Args:
            blocks: paragraphs and tables, at a random place among sections about other subjects.
            is_first: the blocks stand at the top, as a screenshot shows it.
            is_apart: the blocks stand apart, each at a place of its own.
            more: ``picture``, ``trouble`` and ``unfolded``, as the labelled set has them.
        """
        draw = self.world.draw
        sections = self.filler.sections((length_chars or self._length()) - sum(map(len, blocks)))
        aside = draw.choice(_ASIDES).format(
            a=draw.randint(3, 9), b=f"{draw.randint(1_310, 9_800):,}"
        )
        related = "\n".join(f"- {name}" for name in draw.sample(_RELATED, 3))
        footer = f"{site} - Imprint - Privacy - Terms of use - Page {draw.randint(101, 999)}"
        content = self._placed(title, blocks, sections, is_first, is_apart)
        text = [
            f"{site} {draw.choice(_MENUS)}",
            f"# {title}",
            *content,
            aside,
            f"## See also\n\n{related}",
            footer,
        ]
        return self.bare_page(
            url or f"https://www.{slug(site)}.example/{slug(title)}", *text, **more
        )

    def bare_page(self, url: str, *blocks: str, **more: Any) -> str:
        """Add a page that has these blocks alone and return its address."""
        if url in self.pages:
            raise ValueError(f"two pages at {url}")
        self.pages[url] = LabelledPage(text="\n\n".join(blocks), **more)
        return url

    def _length(self) -> int:
        ((shortest, longest),) = self._lengths.choices(_LENGTHS, _OF_A_THOUSAND)
        return self._lengths.randint(shortest, longest)

    def _placed(
        self,
        title: str,
        blocks: Sequence[str],
        sections: Sequence[str],
        is_first: bool,
        is_apart: bool,
    ) -> list[str]:
        if is_first:
            return [*blocks, *sections]
        if is_apart:
            places = sorted(
                self._lengths.sample(range(len(sections) + 1), len(blocks))
                if len(sections) >= len(blocks)
                else range(len(blocks))
            )
        else:
            places = [self._lengths.randint(0, len(sections))] * len(blocks)
        found: list[str] = []
        done = 0
        for number, (place, block) in enumerate(zip(places, blocks, strict=True)):
            found += sections[done:place]
            # A block that follows sections about others begins with its own heading.
            if place > 0 and (number == 0 or place > done):
                found.append(f"## {title}")
            found.append(block)
            done = max(done, place)
        return [*found, *sections[done:]]

    def pair(
        self,
        category: str,
        true: str,
        false: str,
        urls: str | Sequence[str] = (),
        *,
        shows: Sequence[str] = (),
        false_urls: str | Sequence[str] | None = None,
        by: str | None = None,
        question: str = TASK,
        answer: str | None = None,
    ) -> None:
        """Add a claim that holds and one that does not, which differ in one detail.

        Args:
            urls: the pages given as sources; none for a claim about the answer.
            shows: the passages, literally, by which the true claim holds and the false one does
                not.
            false_urls: those of the false claim, where the page is the detail.
            by: the page that supports the true claim, of several.
            answer: the agent's; by default it makes the claim and cites the pages.
        """
        self._pairs[category] += 1
        name = f"{slug(category)}-{self._pairs[category]}"
        for claim, given, is_true in (
            (true, urls, True),
            (false, urls if false_urls is None else false_urls, False),
        ):
            sources = (given,) if isinstance(given, str) else tuple(given)
            links = ", ".join(f"[source]({url})" for url in sources)
            supported_by = (by or sources[0],) if is_true and sources else ()
            self.claims.append(
                LabelledClaim(
                    id=f"{name}-{'true' if is_true else 'false'}",
                    category=category,
                    task=question,
                    answer=f"## Findings\n\n- {claim} {links}" if answer is None else answer,
                    question=claim,
                    right=is_true,
                    urls=sources,
                    supported_by=supported_by,
                    shows=tuple(shows) if is_true or false_urls is None else (),
                )
            )

    def extraction(
        self,
        category: str,
        prompt: str,
        expected: Mapping[str, Any],
        *,
        url: str | None = None,
        answer: str = "",
        kinds: Mapping[str, FieldKind] | None = None,
    ) -> None:
        """Add a form with the values that it should have; kinds of fields follow from them."""
        self._pairs[category] += 1
        self.forms.append(
            LabelledForm(
                id=f"{slug(category)}-{self._pairs[category]}",
                category=category,
                task=TASK,
                answer=answer,
                question=prompt,
                right=dict(expected),
                url=url,
                fields={
                    name: (kinds or {}).get(name) or _kind(value)
                    for name, value in expected.items()
                },
            )
        )


def _kind(value: object) -> FieldKind:
    kinds: dict[type, FieldKind] = {
        int: "integer",
        float: "number",
        str: "text",
        list: "list",
        type(None): "text",
    }
    return kinds[type(value)]
