"""Pages about invented subjects, with facts that they state and facts easily confused."""

from __future__ import annotations

from dataclasses import dataclass

from invented.book import Book, row, table
from invented.world import long_date


@dataclass(frozen=True)
class Bridge:
    """A bridge, and its predecessor."""

    url: str
    name: str
    town: str
    other_town: str
    river: str
    other_river: str
    architect: str
    engineer: str
    opened: int
    begun: int
    length_m: int
    old_length_m: int
    spans: int
    old_spans: int
    tower_m: int
    clearance_m: int
    steel_from: str
    stone_from: str
    cost: int

    def says(self, fact: str) -> str:
        """Return the words by which the article states a fact, named as the field."""
        words = {
            "architect": f"The design by the architect {self.architect}",
            "engineer": f"under the engineer {self.engineer}",
            "opened": f"ended in {self.opened}, when the bridge was opened to traffic",
            "river": f"road and rail bridge over the {self.river}",
            "other_town": f"between {self.town} and {self.other_town}",
            "length_m": f"It is {self.length_m} metres long",
            "spans": f"and has {self.spans} spans",
            "steel_from": f"The steel was rolled in {self.steel_from}",
            "stone_from": f"comes from quarries near {self.stone_from}",
            "cost": f"The work cost {self.cost} million crowns",
            "tower_m": f"The towers rise {self.tower_m} metres",
            "clearance_m": f"up to a height of {self.clearance_m} metres",
        }
        return words[fact]


def bridge(book: Book) -> Bridge:
    """Add the article on a bridge."""
    world = book.world
    town, other_town, river, other_river, steel, stone, site = (world.place() for _ in range(7))
    architect, engineer = world.person(), world.person()
    begun = world.number(2009, 2017)
    opened = begun + world.number(4, 7)
    length, old_length = world.numbers(2, 380, 720)
    spans, old_spans = world.numbers(2, 4, 14)
    tower, clearance, cost = (
        world.number(70, 110),
        world.number(24, 41),
        world.number(140, 390),
    )
    name = f"{town} Bridge"
    url = book.page(
        f"{site} Encyclopedia",
        name,
        f"The {name} is a cable-stayed road and rail bridge over the {river}, between {town} and "
        f"{other_town}. It is {length} metres long and has {spans} spans. Further upstream, the "
        f"{river} takes in the {other_river}, which no bridge crosses.",
        "## Construction",
        f"The design by the architect {architect} won a competition with 31 entries. Building "
        f"work began in {begun} under the engineer {engineer} and ended in {opened}, when the "
        f"bridge was opened to traffic. The steel was rolled in {steel}; the granite of the piers "
        f"comes from quarries near {stone}. The work cost {cost} million crowns, of which the "
        "state paid two thirds.",
        "## Dimensions",
        f"The towers rise {tower} metres above the water. Ships up to a height of {clearance} "
        "metres pass below the deck at mean water level.",
        "## The old bridge",
        f"The predecessor, an arch bridge of {old_length} metres with {old_spans} spans, was "
        "pulled down two years later. Its stones were used for the new quay.",
    )
    return Bridge(
        url,
        name,
        town,
        other_town,
        river,
        other_river,
        architect,
        engineer,
        opened,
        begun,
        length,
        old_length,
        spans,
        old_spans,
        tower,
        clearance,
        steel,
        stone,
        cost,
    )


@dataclass(frozen=True)
class Grid:
    """A table with numbers, and how a claim names one of its cells."""

    url: str
    rows: list[str]
    columns: list[str]
    cells: list[list[int]]
    sentence: str

    def claim(self, place: int, column: int, value: int | None = None) -> str:
        """Return the claim on a cell, with its own value or another one."""
        shown = self.cells[place][column] if value is None else value
        return self.sentence.format(
            row=self.rows[place], column=self.columns[column], value=f"{shown:,}"
        )

    def line(self, place: int) -> str:
        """Return a row as the page has it."""
        return row(self.rows[place], *(f"{cell:,}" for cell in self.cells[place]))


_GRIDS = (
    ("Passenger statistics", "Line", "Line {}", "Passengers by line and "
                                                "year", "In {column}, {row} carried {value} "
                                                        "passengers.", 21_000, 98_000),
    ("Annual accounts", "Division", "{} division", "Revenue in thousand "
                                                   "crowns", "In {column}, the {row} had a "
                                                             "revenue of {value} thousand "
                                                             "crowns.", 1_200, 9_800),
    ("Harvest report", "District", "{}", "Apples in tonnes", "In {column}, the district of {row} "
                                                             "harvested {value} tonnes of "
                                                             "apples.", 310, 4_900),
    ("Museum visits", "House", "{} House", "Visits by house and year", "In {column}, {row} "
                                                                       "counted {value} "
                                                                       "visits.", 5_100, 88_000),
)  # fmt: skip


def grid(book: Book, number: int) -> Grid:
    """Add a page with a table of five rows and four years."""
    world = book.world
    title, head, row_name, caption, sentence, low, high = _GRIDS[number % len(_GRIDS)]
    rows = [row_name.format(world.place()) for _ in range(5)]
    first = world.number(2016, 2021)
    columns = [str(year) for year in range(first, first + 4)]
    values = world.numbers(20, low, high)
    cells = [values[start : start + 4] for start in range(0, 20, 4)]
    site = f"{world.place()} {world.pick('Institute', 'Authority', 'Association', 'Board')}"
    url = book.page(
        site,
        f"{title} {columns[0]} to {columns[-1]}",
        f"Published by the {site}. The figures of {columns[-1]} are final; nothing was rounded.",
        f"{caption}\n"
        + table(
            [head, *columns],
            *(
                [name, *(f"{cell:,}" for cell in own)]
                for name, own in zip(rows, cells, strict=True)
            ),
        ),
        "## Method",
        "Each unit reports its figures by the end of January. Reports that arrive later are "
        "added to the next year, which concerned none of the years shown here.",
    )
    return Grid(url, rows, columns, cells, sentence)


@dataclass(frozen=True)
class Museum:
    """A museum for visitors: times and prices."""

    url: str
    name: str
    adult: int
    child: int
    tour: int
    closes_late: int


def museum(book: Book) -> Museum:
    """Add the page for visitors of a museum."""
    world = book.world
    name = (
        f"{world.place()} Museum of "
        f"{world.pick('Glass', 'Printing', 'Navigation', 'Salt', 'Clocks')}"
    )
    child = world.number(4, 7)
    adult, tour, late = (
        child + world.number(4, 8),
        world.number(3, 9),
        world.number(8, 9),
    )
    changed = long_date(world.day(2022, 2025))
    url = book.page(
        name,
        "Plan your visit",
        f"The {name} shows its collection on three floors. Prices and times hold since {changed}.",
        "Opening times\n"
        + table(
            ["Day", "Open"],
            ["Monday", "closed"],
            ["Tuesday to Thursday", "10 a.m. to 5 p.m."],
            ["Friday", f"10 a.m. to {late} p.m."],
            ["Saturday and Sunday", "11 a.m. to 6 p.m."],
        ),
        "Prices in crowns\n"
        + table(
            ["Ticket", "Price"],
            ["Adults", adult],
            ["Children from 6 to 17", child],
            ["Guided tour, each person, in addition", tour],
        ),
        "## Good to know",
        "Dogs may not be taken inside, except assistance dogs. The lift reaches the first and "
        "the second floor but not the tower. Photographs without flash are allowed; tripods are "
        "not. The cloakroom is free of charge, and it does not take suitcases. The cafe can be "
        "visited without a ticket.",
    )
    return Museum(url, name, adult, child, tour, late)
