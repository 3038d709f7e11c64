"""Invented places, people, numbers and dates, so that a judge cannot know the facts.

The same for a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta

_STARTS = [
    "Tarn",
    "Vel",
    "Orm",
    "Kest",
    "Bran",
    "Hol",
    "Ash",
    "Wick",
    "Mar",
    "Sel",
    "Dun",
    "Fen",
    "Gar",
    "Lor",
    "Pel",
    "Quar",
    "Rud",
    "Stav",
    "Thel",
    "Ulv",
]
_ENDS = [
    "holt",
    "mora",
    "wick",
    "sund",
    "dale",
    "ford",
    "lin",
    "beck",
    "stad",
    "mere",
    "rath",
    "ven",
    "gard",
    "moor",
    "low",
    "ness",
    "burg",
    "vale",
]
_MIDDLES = ["", "", "en", "er", "in", "os", "al", "um", "ik", "ar"]
_FIRST = [
    "Maria",
    "Adam",
    "Ingrid",
    "Tomas",
    "Clara",
    "Victor",
    "Nadia",
    "Henrik",
    "Joanna",
    "Simon",
    "Petra",
    "Daniel",
    "Livia",
    "Oscar",
    "Ruth",
    "Anton",
    "Helena",
    "Marcus",
    "Irene",
    "Felix",
    "Greta",
    "Leon",
    "Alma",
    "Hugo",
    "Edith",
    "Conrad",
    "Vera",
    "Jonas",
    "Paula",
    "Emil",
]
_SURNAMES = [
    "Hell",
    "Vor",
    "Ock",
    "Lind",
    "Bram",
    "Tess",
    "Kar",
    "Mol",
    "Sand",
    "Fal",
    "Dris",
    "Wend",
    "Garr",
    "Orr",
    "Nim",
    "Past",
    "Ral",
    "Zet",
    "Cor",
    "Jann",
]
_SURNAME_ENDS = [
    "strom",
    "an",
    "ander",
    "qvist",
    "well",
    "ova",
    "berg",
    "low",
    "enko",
    "ini",
    "eau",
    "ley",
    "mark",
    "oux",
    "ren",
    "sby",
]
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


class World:
    """Draws each name once, so that no two subjects share one."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self._used: set[str] = set()

    def place(self) -> str:
        """Return a town, river or firm."""
        return self._new(lambda: "".join(map(self.draw.choice, (_STARTS, _MIDDLES, _ENDS))))

    def surname(self) -> str:
        """Return a surname."""
        return self._new(
            lambda: "".join(map(self.draw.choice, (_SURNAMES, _MIDDLES, _SURNAME_ENDS)))
        )

    def person(self) -> str:
        """Return a first name and a surname."""
        return f"{self.draw.choice(_FIRST)} {self.surname()}"

    def number(self, low: int, high: int) -> int:
        """Return a whole number."""
        return self.draw.randint(low, high)

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        """Return different whole numbers."""
        return self.draw.sample(range(low, high), count)

    def day(self, first_year: int = 2016, last_year: int = 2024) -> date:
        """Return a date whose day cannot be a month."""
        start = date(first_year, 1, 1)
        while True:
            found = start + timedelta(days=self.draw.randrange(366 * (last_year - first_year)))
            if 13 <= found.day <= 27:
                return found

    def pick(self, *choices: str) -> str:
        """Return one of some texts."""
        return self.draw.choice(choices)

    def order(self, items: Sequence[str]) -> list[str]:
        """Return the items in random order."""
        return self.draw.sample(items, len(items))

    def _new(self, make: Callable[[], str]) -> str:
        while True:
            name = make()
            if name not in self._used:
                self._used.add(name)
                return name


def slug(text: str) -> str:
    """Return a name as addresses have it."""
    return "-".join("".join(sign if sign.isalnum() else " " for sign in text.lower()).split())


def long_date(day: date) -> str:
    """Return a date such as 14 March 2021."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"
