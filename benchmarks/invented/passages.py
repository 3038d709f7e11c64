"""Claims that take reading.

They are in other words, over two passages, against corrections, pictures and answers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from invented.book import Book, row, table
from invented.world import long_date
from mind2web2_trust.judge_check.labelled_set import Picture

PAIRS = 6
# The page's words, the same in other words, and something else in such words.
_PARAPHRASES = (
    ("{name} stepped down as mayor of {town} after it became known that the auction of the "
     "harbour had been rigged.", "{name} gave up the highest office of {town} in the wake of a "
                                 "scandal over a sale.", "{name} was voted out of the highest "
                                                         "office of {town} in the wake of a "
                                                         "scandal over a sale."),
    ("On weekdays the swimming hall of {town} opens its doors two hours before noon and locks "
     "them at six in the evening.", "From Monday to Friday, one can bathe in {town}'s indoor pool "
                                    "from 10 a.m. until 6 p.m.", "From Monday to Friday, one can "
                                                                 "bathe in {town}'s indoor pool "
                                                                 "from noon until 6 p.m."),
    ("{name} never lived to see the {town} Hall finished: the architect died in the winter before "
     "the roof was put on.", "The {town} Hall was completed only after the death of {name}, who "
                             "had designed it.", "{name}, who had designed the {town} Hall, died "
                                                 "after it had been completed."),
    ("Those under sixteen are let into the {town} Gardens without paying; everyone else buys a "
     "ticket.", "Admission to the {town} Gardens is free for a child of "
                "twelve.", "Admission to the {town} Gardens is free for a student of twenty."),
    ("Of two bids for the {town} Tunnel the dearer one won, since the jury of {name} trusted its "
     "timetable more.", "Price did not decide who builds the {town} Tunnel; the more expensive "
                        "offer was chosen.", "Price decided who builds the {town} Tunnel; the "
                                             "less expensive offer was chosen."),
    ("{name} sold the {town} Star to her brother and, a year on, bought the boat back from "
     "him.", "The {town} Star belonged to {name} again a year after she had parted with "
             "it.", "The {town} Star stayed with the brother of {name} for good after she had "
                    "parted with it."),
)  # fmt: skip


def paraphrase(book: Book) -> None:
    """A claim in other words than the page's, and one in such words that says something else."""
    world = book.world
    for sentence, true, false in _PARAPHRASES:
        names = {"name": world.person(), "town": world.place()}
        said = sentence.format(**names)
        url = book.page(
            f"{world.place()} Gazette",
            f"Notes from {names['town']}",
            f"A look back at a lively year in {names['town']}.",
            said,
        )
        book.pair(
            "paraphrase",
            true.format(**names),
            false.format(**names),
            url,
            shows=[said],
        )


def two_passages(book: Book) -> None:
    """Claims that need two passages, far from each other on the page."""
    world = book.world
    for number in range(PAIRS):
        town = world.place()
        boats = [f"{world.place()} Express" for _ in range(2)]
        firms = [f"{world.place()} Lines" for _ in range(2)]
        seats = [world.place() for _ in range(2)]
        founders = [world.person() for _ in range(2)]
        ships = [
            f"From {town} the {boat} sails each {day}. It is run by {firm}."
            for boat, firm, day in zip(boats, firms, ("morning", "evening"), strict=True)
        ]
        owners = [
            f"{firm} has its seat in {seat} and was founded by {founder}."
            for firm, seat, founder in zip(firms, seats, founders, strict=True)
        ]
        url = book.page(
            f"{town} Port Guide",
            f"Ferries from {town}",
            *world.order(ships),
            *world.order(owners),
            is_apart=True,
            length_chars=9_000 + 4_000 * number,
        )
        own = number % 2
        claim, values = (
            ("The company that runs the {boat} has its seat in {{}}.", seats),
            ("The {boat} is run by a company that was founded by {{}}.", founders),
        )[number % 4 // 2]
        claim = claim.format(boat=boats[own])
        book.pair(
            "two passages joined",
            claim.format(values[own]),
            claim.format(values[1 - own]),
            url,
            shows=[ships[own], owners[own]],
        )


def conflict(book: Book) -> None:
    """Two values on one page, of which the page itself withdraws one."""
    world = book.world
    for number in range(PAIRS):
        name, day = f"{world.place()} Tower", long_date(world.day())
        wrong, right = map(str, world.numbers(2, 110, 320))
        withdrawn, correction = (
            (f"The {name} is {wrong} metres high.", f"Correction of {day}: an earlier paragraph "
                                                    f"on this page gives the height of the {name} "
                                                    f"wrongly. It is {right} metres, not {wrong}."),
            (f"At {wrong} metres, the {name} tops all others of the "
             "region.", f"Note by the editors, {day}: the height that this page states for the "
                        f"{name} further up, {wrong} metres, was that of the design. As built, it "
                        f"has {right} metres."),
            (f"Height of the {name}: {wrong} m (provisional).", f"Final survey, {day}: height of "
                                                                f"the {name}: {right} m. It "
                                                                "replaces the provisional figure."),
        )[number % 3]  # fmt: skip
        url = book.page(
            f"{world.place()} Almanac",
            name,
            withdrawn,
            correction,
            is_apart=True,
            length_chars=7_000 + 3_000 * number,
        )
        claim = f"The {name} is {{}} metres high."
        book.pair(
            "conflict within a page",
            claim.format(right),
            claim.format(wrong),
            url,
            shows=[withdrawn, correction],
        )


def text_and_picture(book: Book) -> None:
    """Text and poster differ, and the page says which of them holds."""
    world = book.world
    for number in range(PAIRS):
        name, stage = f"{world.place()} Concert", world.place()
        first = world.day()
        days = [long_date(first), long_date(first + timedelta(days=number + 2))]
        in_text, in_picture = days if number % 2 else reversed(days)
        is_text_right = number < PAIRS // 2
        right, wrong = (in_text, in_picture) if is_text_right else (in_picture, in_text)
        rule = (
            "The poster was printed too early: where it differs from this text, this text holds."
            if is_text_right
            else "This text is from last year's programme: where it differs from the poster, the "
            "poster holds."
        )
        said = f"The {name} is held on {in_text}."
        poster = [name.upper(), in_picture, f"{stage} Hall"]
        url = book.page(
            f"{stage} Hall",
            name,
            said,
            rule,
            "[image]",
            is_first=True,
            picture=Picture(kind="poster", title=name, rows=tuple((line,) for line in poster)),
        )
        claim = f"The {name} is held on {{}}."
        book.pair(
            "text against picture",
            claim.format(right),
            claim.format(wrong),
            url,
            shows=[said, rule, in_picture],
        )


def merged_heads(book: Book) -> None:
    """A cell under two rows of heads, the upper ones over two columns each."""
    world = book.world
    for number in range(PAIRS):
        site = f"{world.place()} Baths"
        rows = [f"{world.place()} Pool" for _ in range(5)]
        groups = ("Winter", "Summer", "Holidays")
        values = world.numbers(30, 110, 980)
        cells = [values[start : start + 6] for start in range(0, 30, 6)]
        heads = [f"{group} / {kind}" for group in groups for kind in ("Adults", "Children")]
        # The first form is a capture's for merged heads; the second is an ordinary table's.
        spread = [
            ["", *(part for group in groups for part in (group, ""))],
            ["", *("Adults", "Children") * 3],
        ]
        lines = [row(name, *own) for name, own in zip(rows, cells, strict=True)]
        shown = (
            table(["Visits", *heads])
            if number % 2
            else "\n".join([row(*spread[0]), row(*["---"] * 7), row(*spread[1])])
        )
        url = book.page(
            site,
            f"Visits to the {site}",
            "Visits by season and age, in hundreds. A head without a name belongs to the one on "
            "its left.",
            "\n".join([shown, *lines]),
        )
        place, column = world.number(0, 4), world.number(0, 5)
        # The same age in another season, and the other age in the same season.
        beside = (column + 2) % 6 if number % 2 else column ^ 1
        group, kind = groups[column // 2].lower(), ("adults", "children")[column % 2]
        claim = f"In the {rows[place]}, {kind} made {{}} hundred visits in the season '{group}'."
        book.pair(
            "merged heads",
            claim.format(cells[place][column]),
            claim.format(cells[place][beside]),
            url,
            shows=[lines[place]],
        )


def contrary_answer(book: Book) -> None:
    """An answer that asserts the contrary of its page, with confidence."""
    world = book.world
    for number in range(PAIRS):
        name, town = f"{world.place()} Canal", world.place()
        right, wrong = world.numbers(2, 31, 190)
        engineer, other = world.person(), world.person()
        said, claim, values = (
            (f"The {name} is {right} kilometres long and ends in "
             f"{town}.", f"The {name} is {{}} kilometres long.", (right, wrong)),
            (f"{engineer} led the digging of the {name}, which reached {town} after {right} "
             "months.", f"The digging of the {name} was led by {{}}.", (engineer, other)),
            (f"Near {town} the {name} climbs {right} metres by locks.", "By its locks near "
                                                                        f"{town} the {name} "
                                                                        f"climbs {{}} "
                                                                        "metres.", (right, wrong)),
        )[number % 3]  # fmt: skip
        url = book.page(f"{world.place()} Waterways", name, said)
        true, false = (claim.format(value) for value in values)
        answer = (
            f"## Findings\n\n**{false}** I have checked this twice, and the source confirms it "
            "word for word "
            f"([source]({url})). Figures found elsewhere, such as {values[0]}, are wrong."
        )
        book.pair(
            "answer that asserts the contrary",
            true,
            false,
            url,
            shows=[said],
            answer=answer,
        )


CATEGORIES: tuple[Callable[[Book], None], ...] = (
    paraphrase,
    two_passages,
    conflict,
    text_and_picture,
    merged_heads,
    contrary_answer,
)
