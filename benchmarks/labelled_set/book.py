"""Collects pages, claims and extractions, and gives every page the frame of a real site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from labelled_set.world import World, slug

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
    "Photographs by the editorial office. The map was redrawn after the {a}th revision of the survey.",
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


def table(heads: Sequence[object], *rows: Sequence[object]) -> str:
    """Return a table as the text of a captured page has it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


class Book:
    """The set that is being made."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pages: dict[str, dict[str, Any]] = {}
        self.claims: list[dict[str, Any]] = []
        self.extractions: list[dict[str, Any]] = []
        self._pairs: Counter[str] = Counter()

    def page(
        self,
        site: str,
        title: str,
        *blocks: str,
        url: str | None = None,
        bare: bool = False,
        **more: Any,
    ) -> str:
        """Add a page and return its address.

        Args:
            blocks: paragraphs and tables.
            bare: without menu, related pages and footer.
            more: ``picture``, ``trouble`` and ``unfolded``, as the labelled set has them.
        """
        url = url or f"https://www.{slug(site)}.example/{slug(title)}"
        assert url not in self.pages, url
        text = [f"# {title}", *blocks]
        if not bare:
            draw = self.world.draw
            aside = draw.choice(_ASIDES).format(
                a=draw.randint(3, 9), b=draw.randint(310, 9800)
            )
            related = "\n".join(f"- {name}" for name in draw.sample(_RELATED, 3))
            footer = f"{site} - Imprint - Privacy - Terms of use - Page {draw.randint(1000, 9999)}"
            text = [
                f"{site} {draw.choice(_MENUS)}",
                *text,
                aside,
                f"## See also\n\n{related}",
                footer,
            ]
        self.pages[url] = {"text": "\n\n".join(text), **more}
        return url

    def pair(
        self,
        category: str,
        true: str,
        false: str,
        urls: str | Sequence[str] = (),
        *,
        false_urls: str | Sequence[str] | None = None,
        by: str | None = None,
        question: str = "",
        answer: str | None = None,
    ) -> None:
        """Add a claim that holds and one that does not, which differ in one detail.

        Args:
            urls: the pages given as sources; none for a claim about the answer.
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
            sources = [given] if isinstance(given, str) else list(given)
            links = ", ".join(f"[source]({url})" for url in sources)
            self.claims.append(
                {
                    "id": f"{name}-{'true' if is_true else 'false'}",
                    "category": category,
                    "task": question
                    or "Collect facts on the subject, each with the page that states it.",
                    "answer": answer
                    if answer is not None
                    else f"## Findings\n\n- {claim} {links}",
                    "question": claim,
                    "right": is_true,
                    "urls": sources,
                    "supported_by": [by or sources[0]] if is_true and sources else [],
                }
            )

    def extraction(
        self,
        category: str,
        prompt: str,
        expected: Mapping[str, Any],
        *,
        url: str | None = None,
        answer: str = "",
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        """Add a form with the values that it should have; kinds of fields follow from them."""
        self._pairs[category] += 1
        self.extractions.append(
            {
                "id": f"{slug(category)}-{self._pairs[category]}",
                "category": category,
                "task": "Collect facts on the subject, each with the page that states it.",
                "answer": answer,
                "question": prompt,
                "right": dict(expected),
                "url": url,
                "fields": {
                    name: (kinds or {}).get(name) or _kind(value)
                    for name, value in expected.items()
                },
            }
        )


def _kind(value: object) -> str:
    kinds = {
        int: "integer",
        float: "number",
        str: "text",
        list: "list",
        type(None): "text",
    }
    return kinds[type(value)]
