"""The extractions by category, with the values that follow from how page and answer were made."""

from __future__ import annotations

from collections.abc import Callable

from invented.book import Book
from invented.subjects import bridge, grid, museum
from invented.world import long_date, slug

FORMS = 10


def values(book: Book) -> None:
    """Values in running text."""
    for number in range(FORMS):
        b = bridge(book)
        name, prompt, value = (
            ("architect", "The name of the architect.", b.architect),
            ("opened", "The year of the opening.", b.opened),
            ("length_m", "The length of the present bridge in metres.", b.length_m),
            ("river", "The river that the bridge crosses.", b.river),
            ("old_spans", "The number of spans of the predecessor.", b.old_spans),
            ("steel_from", "The place where the steel was rolled.", b.steel_from),
            ("towers_m", "The height of the towers in metres.", b.tower_m),
            (
                "engineer",
                "The name of the engineer who led the building work.",
                b.engineer,
            ),
            ("begun", "The year in which building work began.", b.begun),
            ("cost_millions", "The cost in million crowns.", b.cost),
        )[number]
        book.extraction(
            "extraction: value in text",
            f"{prompt} The page is on the {b.name}.",
            {name: value},
            url=b.url,
        )


def cells(book: Book) -> None:
    """Cells and columns of a table."""
    for number in range(FORMS):
        g = grid(book, number)
        row, column = book.world.number(0, 4), book.world.number(0, 3)
        if number % 3 == 2:
            best = max(range(5), key=lambda own: g.cells[own][column])
            expected: dict[str, object] = {
                "name": g.rows[best],
                "value": g.cells[best][column],
            }
            prompt = (
                f"Name and value of the row with the largest value in {g.columns[column]}, "
                "as the table has them."
            )
        elif number % 3 == 1:
            expected = {"values": [f"{own[column]:,}" for own in g.cells]}
            prompt = f"All values of {g.columns[column]}, as written."
        else:
            expected = {"value": g.cells[row][column]}
            prompt = f"The value of {g.rows[row]} in {g.columns[column]}."
        book.extraction("extraction: table", prompt, expected, url=g.url)


def absent(book: Book) -> None:
    """A value that is stated, beside one that is not."""
    for number in range(FORMS):
        m = museum(book)
        missing = (
            "fax_number",
            "director",
            "founded",
            "wheelchairs_for_hire",
            "parking_price",
        )[number % 5]
        name, value, label = (
            ("adult_price", m.adult, "the price for adults"),
            ("child_price", m.child, "the price for children"),
        )[number % 2]
        book.extraction(
            "extraction: value that is not stated",
            f"From the page: {label} in crowns ({name}), and {missing.replace('_', ' ')} "
            f"({missing}).",
            {name: value, missing: None},
            url=m.url,
        )


def lists(book: Book) -> None:
    """Lists in the agent's answer."""
    world = book.world
    for number in range(FORMS):
        hotels = [
            f"{world.pick('Hotel', 'Inn', 'Pension')} {world.place()}"
            for _ in range(3 + number % 3)
        ]
        prices = [f"{price} crowns" for price in world.numbers(len(hotels), 61, 240)]
        away, town = f"Hotel {world.place()}", world.place()
        lines: list[str] = []
        for hotel, price in zip(hotels, prices, strict=True):
            place = len(lines) + 1
            lines.append(f"{place}. **{hotel}**: {price} a night")
        answer = (
            f"I found these places in {town}:\n\n{chr(10).join(lines)}\n\n"
            f"I left out {away}, which is closed for repairs until {long_date(world.day())}."
        )
        wants_prices = number % 2 == 1
        book.extraction(
            "extraction: list in the answer",
            f"The prices a night of the places in {town} that the answer recommends, such as '50 "
            "crowns'."
            if wants_prices
            else f"The names of the places in {town} that the answer recommends.",
            {"items": prices if wants_prices else hotels},
            answer=answer,
        )


def links(book: Book) -> None:
    """Addresses in the agent's answer."""
    world = book.world
    for number in range(FORMS):
        firm, other = world.place(), world.place()
        url = f"https://www.{slug(firm)}.example/press/{world.number(1000, 9999)}?lang=en"
        further = f"https://{slug(other)}.example/{world.number(10, 99)}/report.html"
        if number % 2:
            answer = (
                f"{firm} opened its plant in May [2]; {other} has none [1].\n\n[1]: "
                f"{further}\n[2]: {url}\n"
            )
        else:
            answer = (
                f"- {firm} opened its plant in May ([press release]({url})).\n- {other} has "
                f"none ([report]({further}))."
            )
        expected: dict[str, object] = {"url": url}
        if number % 3 == 2:
            expected["homepage_url"] = None
        book.extraction(
            "extraction: address in the answer",
            f"The address cited for the plant of {firm} (url)"
            + (
                f", and the address that the answer gives for the homepage of {firm} "
                "(homepage_url)."
                if number % 3 == 2
                else "."
            ),
            expected,
            answer=answer,
        )


def as_it_stands(book: Book) -> None:
    """Extractions of the answer's words against a calculation or the task.

    Pages that say nothing.
    """
    world = book.world
    for number in range(FORMS):
        firm = f"{world.place()} Line"
        ships, each = world.number(3, 9), world.number(110, 390)
        if number % 2:
            url = book.bare_page(
                f"https://fleet.{slug(firm)}.example/ships/{number}",
                "# Sign in",
                "You need an account to read this page.",
                "User name\n\nPassword",
                trouble="login_wall" if number % 4 == 1 else None,
            )
            book.extraction(
                "extraction: as it stands",
                f"Of {firm}: the number of ships (ships) and the seats of each (seats).",
                {"ships": None, "seats": None},
                url=url,
                kinds={"ships": "integer", "seats": "integer"},
            )
            continue
        wrong = ships * each + 100
        answer = f"{firm} has {ships} ships with {each} seats each, so {wrong:,} seats in all."
        book.extraction(
            "extraction: as it stands",
            f"Of {firm}, as the answer states it: ships (ships), seats of each ship (seats), "
            "seats in all (total).",
            {"ships": ships, "seats": each, "total": wrong},
            answer=answer,
        )


CATEGORIES: tuple[Callable[[Book], None], ...] = (
    values,
    cells,
    absent,
    lists,
    links,
    as_it_stands,
)
