"""Numbers with a word for their magnitude: ``3.1k``, ``1,5 Mio.``, ``1億2000万``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# By the power of ten.
_WORDS = {
    3: "k thousand tsd tausend mille mil mila тыс тысяч bin tys ألف हज़ार 千 천",
    4: "万 萬 만",
    5: "lakh lakhs लाख",
    6: "m mm mn mio mln million millions millionen millón millones milhão milhões milione milioni"
    " млн миллиона миллионов milyon milion milionów مليون 百万 백만",
    7: "crore crores करोड़",
    8: "億 亿 억",
    9: "b bn billion billions mrd mld milliard milliards milliarde milliarden miliardo miliardi"
    " млрд миллиарда миллиардов milyar mld miliard miliardów مليار 十亿",
    12: "t tn trn trillion trillions billionen bio трлн 兆 조 万亿",
}
_SCALES = {word: 10**power for power, words in _WORDS.items() for word in words.split()}
_SPELLED = "|".join(sorted(map(re.escape, _SCALES), key=len, reverse=True))
_NUMBER = r"\d+(?:[,'\u2019\u00a0\u202f ]\d{3}(?!\d))*(?:[.,]\d+)?"
# A word of letters ends there; a Chinese, Japanese or Korean one goes on.
_PART = re.compile(
    rf"({_NUMBER})[ \u00a0\u202f-]?({_SPELLED})(?:(?<=[\u3400-\u9fff\uac00-\ud7af])|(?![^\W\d_]))",
    re.IGNORECASE,
)
_AMOUNT = re.compile(rf"(?<![A-Za-z\d_.])(?:{_PART.pattern}\s?){{1,3}}", re.IGNORECASE)
_THOUSANDS = re.compile(r"[,'\u2019\u00a0\u202f ](?=\d{3}(?!\d))")


class Amount(NamedTuple):
    """A number with its magnitude, and its place.

    Args:
        step: the value of its last digit.
    """

    start: int
    end: int
    value: float
    step: float

    def is_near(self, number: float) -> bool:
        """Tell whether a number rounds to it."""
        return abs(number - self.value) <= self.step / 2


def amounts_in(text: str) -> Iterator[Amount]:
    """Yield the numbers of a text that have a magnitude."""
    for match in _AMOUNT.finditer(text):
        value, step = 0.0, 0.0
        for written, word in _PART.findall(match[0]):
            number = _THOUSANDS.sub("", written).replace(",", ".")
            scale = _SCALES[word.casefold()]
            value += float(number) * scale
            step = scale / 10 ** len(number.partition(".")[2])
        yield Amount(*match.span(), value, step)
