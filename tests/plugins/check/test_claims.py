"""The claims that a model makes of statements, and which of them are believed."""

import pytest

from mind2web2.plugins.check.claims import ChunkClaims, chunks_of, claims_of, fitting
from mind2web2.plugins.check.statements import read_report

SAID = (
    "Alder has 1001 inhabitants.",
    "Dorn lies at the sea.",
    "The harbour is shallow.",
    "In 1911 Elm had 7 doors and 9 windows and 11 bells and 13 stairs and 15 lamps and 17 gates.",
)
PARTS = ["In 1911 Elm had 7 doors.", *(f"In 1911 Elm had {n}." for n in ("9 windows", "11 bells"))]
PARTS += [f"In 1911 Elm had {n}." for n in ("13 stairs", "15 lamps", "17 gates")]
# They are in one chunk, as the digest of none but the last is a bound.
[CHUNK] = chunks_of(read_report(" ".join(SAID)).statements)


def entries(*numbered):
    """Return a model's reply."""
    return ChunkClaims.model_validate(
        {"statements": [{"number": number, "claims": claims} for number, claims in numbered]}
    )


def claims(reply):
    """Return the claims that are checked."""
    return [entry.claims for entry in claims_of(CHUNK, fitting(CHUNK, reply))]


OWN = [[said] for said in SAID]
RIGHT = [(n, [said]) for n, said in enumerate(SAID[:3], start=1)]


def test_all_claims_of_a_statement_are_checked():
    assert claims(entries(*RIGHT, (4, PARTS))) == [*OWN[:3], PARTS]


@pytest.mark.parametrize(
    "reply",
    [
        entries(*((n - 1, said) for n, said in RIGHT), (3, PARTS)),
        entries(*RIGHT, *((4, [part]) for part in PARTS)),
        entries(*RIGHT),
        entries(*RIGHT, (4, PARTS[:1])),
        entries(*RIGHT, (4, ["Something is the case."])),
        entries(*RIGHT, (4, [*PARTS, "In 1911 Elm had 99 clocks."])),
        entries(*RIGHT[:2], (3, PARTS), (4, [SAID[2]])),
        entries(*RIGHT[:2], (3, [SAID[1]]), (4, [""])),
        entries((1, [SAID[1]]), (2, [SAID[2]]), (3, [SAID[0]]), (4, PARTS[1:])),
        entries(),
    ],
)
def test_a_statement_whose_claims_say_something_else_is_its_own_claim(reply):
    assert claims(reply) == OWN


def test_names_of_what_came_before_may_take_the_place_of_words():
    said = "The harbour of Dorn is shallow."
    assert claims(entries(*RIGHT[:2], (3, [said]), (4, PARTS))) == [*OWN[:2], [said], PARTS]


def test_statements_without_spaces_between_words_are_split():
    [chunk] = chunks_of(read_report("大坝建于1936年，高221米。").statements)
    parts = ["大坝建于1936年。", "大坝高221米。"]
    found = fitting(chunk, entries((1, parts)))
    assert claims_of(chunk, found)[0].claims == parts
