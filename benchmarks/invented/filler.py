"""Sections about other subjects, which make invented pages as long as real ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

from invented.world import MONTHS

# No beginning is the beginning of a name that ``World`` draws, so that no section speaks of a
# case's subject.
_STARTS = (
    "Cald",
    "Ebb",
    "Irt",
    "Jarl",
    "Nev",
    "Tor",
    "Yel",
    "Zan",
    "Crom",
    "Elk",
    "Inver",
    "Penn",
    "Whit",
    "Hex",
    "Brack",
    "Nether",
    "Over",
    "Ickle",
)
_ENDS = (
    "ham",
    "combe",
    "thorpe",
    "bury",
    "minster",
    "haven",
    "cross",
    "field",
    "well",
    "worth",
    "gate",
    "hurst",
    "leigh",
    "ton",
    "cliffe",
    "mouth",
)
_FIRST = ("Agnes", "Bruno", "Cecil", "Dora", "Ernst", "Flora", "Gustav", "Hanna")
_SURNAMES = ("Ablett", "Bexley", "Colby", "Dacre", "Eames", "Firth", "Goole", "Hamer")

_NEWS = (
    "The council of {place} will repair {n} kilometres of road before the winter. The work begins "
    "in {month} and is paid for by the district; the bus line to {other} takes another way until "
    "then.",
    "{person} has been elected head of the rowing club of {place}, with {n} of {more} votes. The "
    "club was founded in {year} and has a boat house on the upper lake.",
    "A storm in {month} {year} blew down {n} trees in the park of {place}. Volunteers from "
    "{other} have planted new ones, most of them limes and maples.",
    "The orchestra of {place} plays in {other} on {day} {month}. It brings {n} musicians, and two "
    "works that {person} wrote for the opening of the hall in {year}.",
    "In {place}, {more} people took part in the count of birds. They saw {n} kinds, among them "
    "the grey wagtail, which had not been seen there since {year}.",
    "The library of {place} lends tools and games as well as books. It counts {more} readers; the "
    "reading room on the first floor has {n} seats.",
    "{person} of {other} won the regional race over {n} kilometres. Second was the runner from "
    "{place}, who had won in {year}.",
    "The mill of {place}, built in {year}, turns again. {person}, its new owner, grinds {n} "
    "tonnes of rye a month and sells the flour at the market of {other}.",
)
_NEIGHBOURS = (
    "The {place} Bridge, {n} metres long, was opened in {year}; it carries the road from {place} "
    "to {other}. Its engineer was {person}.",
    "{place} has {more} inhabitants and covers {n} square kilometres. The town received its "
    "charter in {year}.",
    "The {place} Museum of Rope charges adults {day} crowns. It is closed on Tuesdays and shows "
    "{more} objects on two floors.",
    "The {place} Lighthouse was lit in {year}. It is {n} metres high, and its light can be seen "
    "from {other}.",
    "The ferry from {place} to {other} takes {n} minutes. In {year} it carried {more} passengers, "
    "fewer than in the year before.",
    "{place} Shipping, led by {person}, has {day} ships and {more} berths. It was founded in "
    "{year}.",
    "The {place} Reservoir holds {n} million cubic metres of water. It was built after {year}, by "
    "a plan of {person}.",
    "The {place} Medal of {year} went to {person}, for work on the tides at {other}.",
)
_COMMENTS = (
    "{person}, {day} {month} {year}: I was there in spring and can only agree. The way from "
    "{place} is longer than the map shows, though.",
    "{person}, {day} {month} {year}: Does anyone know whether the path to {other} is open again? "
    "Last time I had to turn back after {n} minutes.",
    "{person}, {day} {month} {year}: Thank you for this page. My grandparents came from {place}, "
    "and I still have {day} of their letters.",
    "{person}, {day} {month} {year}: There is a similar one in {other}, built a little later. It "
    "deserves a page of its own.",
)
_HISTORY = (
    "In the years after {year}, the valley of {place} changed. Where {n} farms had been, a "
    "railway and {day} workshops came; {other}, on the far side of the hill, lost half of its "
    "people within a generation.",
    "Of the old walls of {place} a gate and {n} metres remain. {person}, who described them in "
    "{year}, thought them older than those of {other}, but the deeds say otherwise.",
    "The school of {place} taught {n} pupils in {year}. Its first teacher, {person}, wrote a "
    "grammar that was printed in {other} and used for forty years.",
    "Salt from {place} was carried to {other} by boat. Records of {year} name {more} loads, and a "
    "toll of {day} crowns for each.",
)
_QUESTIONS = (
    "May I bring my bicycle to {place}? Bicycles are taken free of charge on {n} of the boats, as "
    "long as there is room; the timetable of {other} marks them.",
    "Where can I park in {place}? There are {n} places behind the station, and {more} more at the "
    "edge of the town. The first {day} minutes are free.",
    "How do I become a member in {other}? Write to {person} in {place}. Membership begins with "
    "the next month and can be ended at any time.",
)
_SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("From the region", _NEWS),
    ("Elsewhere", _NEIGHBOURS),
    ("Readers' comments", _COMMENTS),
    ("From the archive", _HISTORY),
    ("Other questions", _QUESTIONS),
)
_YEARS = (1871, 2019)


class Filler:
    """Sections about invented subjects that no case asks about; the same for a seed."""

    def __init__(self, seed: str) -> None:
        self._draw = random.Random(seed)

    def sections(self, size_chars: int) -> list[str]:
        """Return sections of about this size together, each with its heading."""
        found = []
        left = size_chars
        while left > 0:
            section = self._section(min(left, self._draw.randint(800, 4_000)))
            found.append(section)
            left -= len(section) + 2
        return found

    def sentences(self, template: str, size_chars: int) -> str:
        """Return paragraphs of this size from a template of any language."""
        return "\n\n".join(self._paragraphs((template,), size_chars))

    def _section(self, size_chars: int) -> str:
        if self._draw.random() < 0.2:
            return self._table(size_chars)
        title, templates = self._draw.choice(_SECTIONS)
        heading = f"## {title}: {self._place()}"
        return "\n\n".join([heading, *self._paragraphs(templates, size_chars)])

    def _paragraphs(self, templates: tuple[str, ...], size_chars: int) -> Iterator[str]:
        while size_chars > 0:
            place, other = self._place(), self._place()
            paragraph = self._draw.choice(templates).format(
                place=place,
                other=other,
                person=f"{self._draw.choice(_FIRST)} {self._draw.choice(_SURNAMES)}",
                year=self._draw.randint(*_YEARS),
                month=self._draw.choice(MONTHS),
                day=self._draw.randint(2, 28),
                n=self._draw.randint(11, 989),
                more=f"{self._draw.randint(1_010, 98_000):,}",
            )
            size_chars -= len(paragraph) + 2
            yield paragraph

    def _table(self, size_chars: int) -> str:
        heads = self._draw.sample(("Visitors", "Boats", "Rooms", "Trees", "Lamps"), 3)
        rows = []
        while size_chars > 0:
            cells = [self._place(), *(str(self._draw.randint(11, 989)) for _ in heads)]
            rows.append(f"| {' | '.join(cells)} |")
            size_chars -= len(rows[-1]) + 1
        top = [f"| Place | {' | '.join(heads)} |", "| --- | --- | --- | --- |"]
        return f"## In figures: {self._place()}\n\n" + "\n".join([*top, *rows])

    def _place(self) -> str:
        return self._draw.choice(_STARTS) + self._draw.choice(_ENDS)
