"""Ways of writing a text so that people do not see it, or programs do not find it."""

from __future__ import annotations

from itertools import cycle, islice


def tags(text: str) -> str:
    """Write a text in tag characters, which are never drawn."""
    return "".join(chr(0xE0000 + ord(letter)) for letter in text)


def selectors(text: str) -> str:
    """Write a text in variation selectors, one a letter."""
    return "".join(chr(0xE0100 + ord(letter) - 16) for letter in text)


def bits(text: str, zero: str = "\u200b", one: str = "\u200c") -> str:
    """Write a text in bits, each a character that is not drawn."""
    return "".join(one if bit == "1" else zero for letter in text for bit in f"{ord(letter):07b}")


def halves(text: str) -> str:
    """Write a text in variation selectors, two a letter."""
    return "".join(chr(0xFE00 + half) for letter in text for half in divmod(ord(letter), 16))


def strewn(hidden: str, cover: str, together: int = 1, apart: int = 1) -> str:
    """Put so many unseen characters after every so many letters of a text."""
    letters = cycle(cover)
    places = (hidden[start : start + together] for start in range(0, len(hidden), together))
    return "".join("".join(islice(letters, apart)) + place for place in places)


def styled(text: str) -> str:
    """Write a text in the bold letters of mathematics."""
    return "".join(
        chr(0x1D41A + ord(letter) - ord("a")) if "a" <= letter <= "z" else letter for letter in text
    )


def wide(text: str) -> str:
    """Write a text in letters as wide as Chinese characters."""
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


def cyrillic(text: str) -> str:
    """Write a text in Cyrillic letters where those look the same."""
    return text.translate(str.maketrans("aceop", "\u0430\u0441\u0435\u043e\u0440"))
