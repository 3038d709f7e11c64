"""The claims that a model makes of statements, and which of them are believed."""

import json
import re
from pathlib import Path

import pytest
from projects import block_in, call, entered
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import main
from mind2web2.pages.cache import CacheFileSys
from mind2web2_check.claims import ChunkClaims, chunks_of, claims_of, fitting
from mind2web2_check.statements import read_report

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


def test_a_statement_that_says_nothing_to_check_is_checked_if_it_has_a_source():
    text = "The dam is old [1]. The dam is tall.\n\n[1]: https://a.example/dam\n"
    [chunk] = chunks_of(read_report(text).statements)
    reply = entries((1, []), (2, []))
    for entry in reply.statements:
        entry.checkable = False
    found = claims_of(chunk, fitting(chunk, reply))
    assert [entry.checkable for entry in found] == [True, False]
    assert [entry.claims for entry in found] == [["The dam is old."], ["The dam is tall."]]


def test_names_of_what_came_before_may_take_the_place_of_words():
    said = "The harbour of Dorn is shallow."
    assert claims(entries(*RIGHT[:2], (3, [said]), (4, PARTS))) == [*OWN[:2], [said], PARTS]


def test_the_cells_of_a_row_are_read_with_the_heads_of_their_columns():
    rows = ("| Elm | 7 | old |", "| | 9 | red brick |", "| Dorn | 9 | 4 | 2 |")
    table = "\n".join(["| Place | Doors in 1911 | |", "|---|---|---|", *rows])
    said = [each.said for each in read_report(table).statements]
    assert said == [
        "Place: Elm | Doors in 1911: 7 | old",
        "Doors in 1911: 9 | red brick",
        "Dorn | 9 | 4 | 2",
    ]
    [chunk, *_] = chunks_of(read_report(table).statements)
    assert chunk.text.startswith(f"1. {said[0]}")
    own = [(n, [said[n - 1]]) for n in range(2, len(chunk.statements) + 1)]
    reply = entries((1, ["Elm had 7 doors in 1911.", "Elm is old."]), *own)
    assert 1 in fitting(chunk, reply)


def test_statements_without_spaces_between_words_are_split():
    [chunk] = chunks_of(read_report("大坝建于1936年，高221米。").statements)
    parts = ["大坝建于1936年。", "大坝高221米。"]
    found = fitting(chunk, entries((1, parts)))
    assert claims_of(chunk, found)[0].claims == parts


TOWNS = {
    "Alder has 1001 inhabitants": "Alder has 1001 inhabitants.",
    "Birch has 1002 wells": "Birch has 1002 wells.",
    "Cedar has 1003 bridges": "Cedar has 1003 bridges.",
    "Dorn lies at the sea": "Dorn lies at the sea.",
    "Elm opened in 1911 and its hall holds 300 and it has 7 doors and 9 windows and 11 bells and 13 "
    "stairs and 15 lamps and 17 gates and 19 clocks and a tower of 40 metres": "Elm opened in 1911. "
    "Its hall holds 300. Elm has 7 doors, 9 windows, 11 bells, 13 stairs, 15 lamps and 99 gates.",
}
ELM = ["Elm opened in 1911.", "Elm's hall holds 300.", "Elm has a tower of 40 metres."]
ELM += [f"Elm has {n}." for n in ("7 doors", "9 windows", "11 bells", "13 stairs", "15 lamps")]
ELM += ["Elm has 17 gates.", "Elm has 19 clocks."]
# What a model may do with its numbers, beginning with nothing.
NUMBERINGS = {
    "right": lambda entries: entries,
    "from zero": lambda entries: [{**each, "number": each["number"] - 1} for each in entries],
    "swapped": lambda entries: [
        {**each, "number": len(entries) + 1 - each["number"]} for each in entries
    ],
    "doubled": lambda entries: entries + entries[:2],
    "all the same": lambda entries: [{**each, "number": 1} for each in entries],
    "one less": lambda entries: entries[1:],
}


def splitting(number):
    """Return a judge that splits statements, and compares numbers and names with the page."""

    def reply(body):
        text = prompt_text(body)
        claim, shown = block_in(text, "claim"), block_in(text, "page") or ""
        if claim is not None:
            words = re.findall(r"\d+|Alder|Birch|Cedar|Dorn|Elm", claim)
            return {"reasoning": "r", "result": all(word in shown for word in words), "quote": ""}
        numbered = re.findall(r"^(\d+)\. (.*)$", block_in(text, "answer"), re.MULTILINE)
        entries = [
            {"number": int(n), "checkable": True, "claims": ELM if "Elm" in said else [said]}
            for n, said in numbered
        ]
        return {"statements": number(entries)}

    return reply


@pytest.mark.parametrize("name", NUMBERINGS)
def test_each_statement_is_judged_by_its_own_page(tmp_path, monkeypatch, name):
    entered(tmp_path, monkeypatch)
    cache = CacheFileSys(tmp_path / "checks/towns/cache/towns/report")
    lines = []
    for number, (said, shown) in enumerate(TOWNS.items()):
        cache.put_web(f"https://towns.example/{number}", shown, None)
        lines.append(f"{said} ([page](https://towns.example/{number})).\n")
    Path("towns.md").write_text("\n".join(lines))
    with JudgeServer(splitting(NUMBERINGS[name])) as server:
        judge = ("--judge_base_url", server.base_url, "--judge_model", "m")
        done = call(main, "check", "towns.md", "--no_capture", "-o", "out.json", *judge)
    assert done.returncode == 0, done.stderr
    statements = json.loads(Path("out.json").read_text())["statements"]
    assert [each["verdict"] for each in statements] == ["supported"] * 4 + ["not there"]
