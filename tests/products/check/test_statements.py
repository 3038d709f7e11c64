"""Which statements a report makes and what each cites; the reports are invented."""

import time

import pytest

from mind2web2_check.statements import ReadReport, read_report

LIST = """

## References
1. First. https://one.example/a
2. Second. https://two.example/b
3. Third. https://three.example/c
"""


def pairs(report: ReadReport) -> list[tuple[str, list[str]]]:
    return [
        (each.text, [url.split("/")[2].split(".")[0] for url in each.sources])
        for each in report.statements
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dam is old [1–3].", [["one", "two", "three"]]),
        ("The dam is old [1,3], very old [2].", [["one", "three", "two"]]),
        ("The dam is old.[1][3] It stands in Ayr.", [["one", "three"], []]),
        ("The dam is old. [1] It stands in Ayr. [2]", [["one"], ["two"]]),
        ("[1] The dam is old. It stands in Ayr.", [["one"], []]),
        ("The dam is old [1]-[3] and tall.", [["one", "two", "three"]]),
        (r"The dam is old \[2\].", [["two"]]),
        ("The dam is old【2】.", [["two"]]),
        ("The dam is old﹝2﹞. It is tall﹝1，3﹞.", [["two"], ["one", "three"]]),
        ("The dam is old [来源3](https://four.example/x).", [["four"]]),
        (
            "The dam is old [[2]](https://four.example/x), [[3]](https://five.example).",
            [["four", "five"]],
        ),
        ("The dam is old<sup>2</sup>. It has 5 m<sup>3</sup> of wood.", [["two"], []]),
        ("The dam² is old. It covers 4 km².", [["two"], []]),
        ("The water has Ca²⁺ and Cu² in it. The dam² is old.", [[], ["two"]]),
        ("The dam is old (3). It is tall (1, 2).", [["three"], ["one", "two"]]),
        (
            "The dam is old.1 It stands in Ayr.2,3 It broke in 1953.1 Later it held.",
            [["one"], ["two", "three"], ["one"], []],
        ),
        (
            "Eels came.1 Crabs (viruses) 2, suggesting more, came.1 More than 3, possibly 2 of "
            "them.1",
            [["one"], ["two", "one"], ["one"]],
        ),
        (
            "Point L5.1 See Fig. 2 there.2 A rate of 24.96 held.1 In 2019.3 Section 2 is long.",
            [["one"], ["two"], ["one"], ["three"], []],
        ),
        (
            "Eels came.1 Crabs had an outer layer 2; in layer 3, possibly 2, it fell.1 In 2021,3 "
            "and later, it rose.1",
            [["one"], ["two", "one"], ["three", "one"]],
        ),
        ("The dam is old.<sup>[3]</sup> It is tall.^[1]^ It is wet.", [["three"], ["one"], []]),
        (
            "[cite_start]The dam is old. [cite: 1, 2] It is tall. [3] And [1] says so.",
            [["one", "two"], ["three"], ["one"]],
        ),
        ("It weighs 3 t[2]; it fell.", [["two"]]),
        ("The dam is the oldest and\nlargest one of all [2].", [["two"]]),
        (
            "It is old [1 & 2]. It is wet [1 and 3]. It fell [citation:2].",
            [["one", "two"], ["one", "three"], ["two"]],
        ),
        ("It is old.\u200b[2]\u200b It is wet.", [["two"], []]),
        (
            "Dr. Roe, e.g. of the U.S. office, agreed. [1] Others et al. [2] did not.",
            [["one"], ["two"]],
        ),
    ],
)
def test_marks_cite_the_entries_of_the_list(text: str, expected: list[list[str]]) -> None:
    assert [sources for _, sources in pairs(read_report(text + LIST))] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The [dam](https://a.example/x_(y)) is old.", ["https://a.example/x_(y)"]),
        (
            "The dam is old ([Post, 2019](https://a.example/z); [Echo](https://b.example)).",
            ["https://a.example/z", "https://b.example"],
        ),
        ("The dam is old. ([Post](https://a.example/z))", ["https://a.example/z"]),
        ("The dam is old (https://a.example/x\\_y).", ["https://a.example/x_y"]),
        ("The dam is old. https://a.example/x", ["https://a.example/x"]),
        ("The dam is old (doi:10.1000/x.1).", ["doi:10.1000/x.1"]),
        (
            "The dam [is old](https://a.example/p#:~:text=is,old).",
            ["https://a.example/p#:~:text=is,old"],
        ),
        (
            "The dam is [old](https://a.example/it's_[b]).",
            ["https://a.example/it's_[b]"],
        ),
        ("The dam is [old](https://a.example/x and no more.", ["https://a.example/x"]),
        (
            "The dam is old (ISBN 978-0-306-40615-7).",
            ["https://openlibrary.org/isbn/978-0-306-40615-7"],
        ),
        (
            "The dam is old (PMIDs 10710235, 20710236; RFC 2119).",
            [
                "https://pubmed.ncbi.nlm.nih.gov/10710235/",
                "https://pubmed.ncbi.nlm.nih.gov/20710236/",
                "https://www.rfc-editor.org/rfc/rfc2119",
            ],
        ),
        (
            "The dam is [old][d].\n\n[d]: https://a.example/x 'Title'",
            ["https://a.example/x"],
        ),
        (
            "The dam is old.[^n]\n\n[^n]: Roe, https://a.example/x",
            ["https://a.example/x"],
        ),
        (
            "<a href='https://a.example/x?a=1&amp;b=2'>The dam</a> is old.",
            ["https://a.example/x?a=1&b=2"],
        ),
    ],
)
def test_links_and_addresses_are_sources_as_they_are_written(
    text: str, expected: list[str]
) -> None:
    assert [each.sources for each in read_report(text).statements] == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "The dam is old. ([a.example][1]) It is tall. ([b.example][2], [a.example][1])\n\n"
            '[1]: https://a.example/x "A"\n[2]: https://b.example/y "B"',
            [["a"], ["b", "a"]],
        ),
        (
            "The dam is old.[^1] It is tall [1].\n\n[^1]: Roe, https://note.example/n\n\n"
            "## References\n1. https://one.example/a",
            [["note"], ["one"]],
        ),
        (
            "The dam is old [1]. It is tall [2].\n\nSources: [1] https://one.example/a [2] Two, "
            "https://two.example/b",
            [["one"], ["two"]],
        ),
        (
            "The dam is old.<sup>[1](https://a.example/x)</sup> It is "
            "tall.<sup>[[2]](https://b.example/y)</sup>",
            [["a"], ["b"]],
        ),
        (
            "It is old [Roe20]. It is wet [LK19, Roe20].\n\nReferences\n[Roe20] Roe. "
            "https://roe.example\n"
            "[LK19] Lee. https://lee.example",
            [["roe"], ["lee", "roe"]],
        ),
        (
            "It is old [1].\n\nSources:\n[1] https://one.example/a\n\nIt is wet "
            "[1].\n\nSources:\n[1] https://two.example/b",
            [["one"], ["two"]],
        ),
        (
            "Two dams:\n\n1. [Ayr](https://a.example/1) is old and wet.\n2. "
            "[Wick](https://b.example/2) is new.",
            [["a"], ["b"]],
        ),
        (
            "- The dam is old and wet.\n  - **Sources:**\n    - [One](https://one.example/a)\n"
            "    - [Two](https://two.example/b)\n- The dam is tall and dry.\n- The weir is low and wet.",
            [["one", "two"], [], []],
        ),
        (
            "Roe’s (2020) book is long.\n\nReferences\n\nRoe, J. (2020). https://roe.example/a",
            [["roe"]],
        ),
    ],
)
def test_forms_of_lists_and_definitions(text: str, expected: list[list[str]]) -> None:
    assert [sources for _, sources in pairs(read_report(text))] == expected


def test_numbers_that_count_or_name_something_are_not_taken_for_marks() -> None:
    """A form with too little evidence is named with its place."""
    report = read_report(
        "The dam has 3 gates and level 2. It cost 1.2 million, about 3, in phase 1." + LIST
    )
    assert [each.marks for each in report.statements] == [[], []]
    assert report.unresolved == []
    doubtful = read_report("A wet place (2).\n\nIt rained on 5 days, then no more." + LIST)
    assert [each.text for each in doubtful.doubts if each.kind == "not taken"] in ([], ["(2)"])


def test_marks_of_a_document_export_with_gaps_in_its_list() -> None:
    report = read_report(
        "Heading\n\nThe dam is old. [1] [4] It is tall.[2]\n\n[1] [2] "
        "one.example\n\nhttps://one.example/a\n\n"
        "[4] A title ... with dots ...\n\nhttps://four.example/d\n\nhttps://four.example/d\n"
    )
    assert pairs(report) == [
        ("The dam is old.", ["one", "four"]),
        ("It is tall.", ["one"]),
    ]
    assert report.uncited == []


def test_the_last_of_many_works_of_an_author_is_found() -> None:
    works = "\n".join(
        f"Roe, A. ({year}). Dams. https://a.example/{year}" for year in range(1800, 2001)
    )
    report = f"Dams are old (Roe, 2000). They are tall (Roe, 1800).\n\n## References\n\n{works}"
    assert [each.sources for each in read_report(report).statements] == [
        ["https://a.example/2000"],
        ["https://a.example/1800"],
    ]


@pytest.mark.parametrize(
    ("count", "sources", "unresolved"),
    [(500, ["https://a.example/0"], []), (501, [], ["(Roe & Lee, 2019)"])],
)
def test_a_citation_that_hundreds_of_works_could_mean_names_none(
    count: int, sources: list[str], unresolved: list[str]
) -> None:
    works = "\n".join(f"Roe, A. (2019). Dams. https://a.example/{each}" for each in range(count))
    report = read_report(f"Dams are old (Roe & Lee, 2019).\n\n## References\n\n{works}")
    assert [each.sources for each in report.statements] == [sources]
    assert report.unresolved == unresolved


def test_an_entry_keeps_all_its_addresses() -> None:
    urls = [f"https://a.example/{number}" for number in range(30)]
    report = f"Dams are old [1].\n\n## References\n\n[1] {' '.join(urls)}"
    assert [each.sources for each in read_report(report).statements] == [urls]


def test_authors_with_a_year_cite_entries_of_the_list() -> None:
    report = read_report(
        "Sales rose (Roe, 2020). Lee et al. (2021) found less (see Lee & Kim, 2019; Roe, 2020). "
        "Nobody knows (Poe et al., 2011)."
        " It rained (June, 2023).\n\nReferences\n\nRoe, J. (2020). Sales. https://roe.example/a\n\n"
        "Lee, A., Kim, B., & Fox, C. (2021). Less. https://lee.example/b\n\nLee, A., & Kim, B. "
        "(2019). Old. https://kim.example/c\n"
    )
    assert [sources for _, sources in pairs(report)] == [
        ["roe"],
        ["lee", "kim", "roe"],
        [],
        [],
    ]
    assert report.unresolved == ["(Poe et al., 2011)"]


WORKS = """

## References

Roe, J. (2020). Dams. https://roe20.example/a

Roe, J. (2021). Weirs. https://roe21.example/a

Roe, J., & Lee, K. (2020). Fish. https://roelee20.example/a

Roe, J., & Lee, K. (2021). Eels. https://roelee21.example/a

Roe, J., Lee, K., & Kim, B. (2021). Crabs. https://roeleekim.example/a

Poe, A. (2022a). Locks. https://poea.example/a

Poe, A. (2022b). Gates. https://poeb.example/a

Poe, A. (2022c). Mills. https://poec.example/a

Fox, B. (2015). First. https://fox1.example/a

Fox, B. (2015). Second. https://fox2.example/a

van der Berg, P. (2018). Outlook for 2020. https://berg.example/a

World Health Organization. (2020). Health. https://who.example/a

Bank of England. (2020). Money. https://bank.example/a

Doe-Moe, C. (2011). Names. https://doe.example/a
"""


@pytest.mark.parametrize(
    ("mark", "cited"),
    [
        # Further years and letters belong to the names before them.
        ("(Poe 2022a, b)", "poea poeb"),
        ("(Poe 2022a,b)", "poea poeb"),
        ("(Poe 2022a and c)", "poea poec"),
        ("(Poe 2022a-c)", "poea poeb poec"),
        ("(Poe, 2022a, 2022b, and 2022c)", "poea poeb poec"),
        ("(Roe 2020 and 2021)", "roe20 roe21"),
        ("(Roe 2020; 2021)", "roe20 roe21"),
        ("(Roe, 2020, 2021; Poe, 2022a)", "roe20 roe21 poea"),
        ("Roe (2020, 2021)", "roe20 roe21"),
        ("Roe (2020; 2021)", "roe20 roe21"),
        ("Poe (2022a, b)", "poea poeb"),
        ("Roe and Lee (2020 and 2021)", "roelee20 roelee21"),
        # Several works need no semicolon, and each may have its place.
        ("(Roe 2020, Poe 2022a)", "roe20 poea"),
        ("(Roe 2020 & Poe 2022a)", "roe20 poea"),
        ("(Poe 2022a and Roe 2020, 2021)", "poea roe20 roe21"),
        ("(Roe 2020, p. 3, and Poe 2022b)", "roe20 poeb"),
        ("(Roe, 2020, ch. 2; Poe, 2022a, para. 4)", "roe20 poea"),
        ("(Roe, 2020, Table 2)", "roe20"),
        ("(Roe 2020, 12, 14)", "roe20"),
        ("(Roe 2020, p. xii)", "roe20"),
        ("(Roe, 2020, May 3)", "roe20"),
        ("(Roe [1998] 2020)", "roe20"),
        ("(Roe 2020\nand Poe 2022a)", "roe20 poea"),
        # Words before, behind and between.
        ("(see Roe 2020 and Poe 2022a for reviews)", "roe20 poea"),
        ("(see, e.g., Roe, 2020)", "roe20"),
        ("(as cited in Roe, 2020)", "roe20"),
        ("(Roe, 2020, as cited in Poe, 2022a)", "roe20 poea"),
        ("(built in 1950, Roe 2020)", "roe20"),
        ("(Roe 2020 found 300 of 500)", "roe20"),
        ("However, Roe (2020)", "roe20"),
        ("In London, Roe and Lee (2020)", "roelee20"),
        # Names and their number.
        ("Roe's (2020)", "roe20"),
        ("Roe and Lee's (2020)", "roelee20"),
        ("Roe [2020]", "roe20"),
        ("(J. Roe and K. Lee 2020)", "roelee20"),
        ("(Roe, J. & Lee, K., 2020)", "roelee20"),
        ("(Roe et al., 2021)", "roeleekim"),
        ("(Roe, Lee, & Kim, 2021)", "roeleekim"),
        ("(Roe & Moe, 2021)", "roe21"),
        ("(World Health Organization [WHO], 2020)", "who"),
        ("The World Health Organization (2020)", "who"),
        # A letter numbers the works of a year that have none.
        ("(Fox 2015a)", "fox1"),
        ("(Fox 2015b)", "fox2"),
        # None of these is in the list.
        ("(Fox 2015c)", ""),
        ("(Poe 2022)", ""),
        ("(Roe 2019)", ""),
        ("(Poe & Lee, 2020)", ""),
        ("(van der Berg 2020)", ""),
        ("(Doe 2011)", ""),
        ("UK Bank (2020)", ""),
        ("Gil, Roe and Kim (2020)", ""),
        ("(Roe, personal communication, May 3, 2020)", ""),
        ("Roe (born in 2020)", ""),
        ("(Roe 2020, changed in 2021)", "roe20"),
    ],
)
def test_years_and_letters_name_the_works_that_a_person_would_name(mark: str, cited: str) -> None:
    said = {
        True: f"The dams here are old and tall {mark}.",
        False: f"{mark} studied the old and tall dams here.",
    }
    report = read_report(said[mark.startswith("(")] + WORKS)
    assert [sorted(sources) for _, sources in pairs(report)] == [sorted(cited.split())]


@pytest.mark.parametrize("style", ["({} {})", "({}, {})"])
@pytest.mark.parametrize(
    ("names", "year", "is_citation"),
    [
        ("Poe", "2019", True),
        ("Poe and Fox", "2019", True),
        ("van Dyke", "2019", True),
        ("see O'Neil", "2019, p. 3", True),
        # Its other year has an entry.
        ("Roe", "2019", True),
        *((month, "2019", False) for month in ("May", "January", "Summer", "as of May")),
        *((name, "2020", False) for name in ("Nature", "Figure", "Version", "Tokyo", "Windows")),
        *((name, "2022", False) for name in ("Q3", "FY", "founded in", "CES", "in Poland")),
        ("Clean Air Act", "1970", False),
        ("the", "2020s", False),
        # It is a word of the report.
        ("Sales", "2019", False),
        ("Ayr", "2019", False),
    ],
)
def test_a_name_and_a_year_without_an_entry_are_unresolved_if_they_can_be_told(
    style: str, names: str, year: str, is_citation: bool
) -> None:
    mark, entries = style.format(names, year), "Roe, J. (2020). Sales. https://roe.example/a"
    report = f"Sales rose in Ayr {style.format('Roe', 2020)}. It fell {mark}.\n\n## References\n\n{entries}"
    assert read_report(report).unresolved == [mark] * is_citation
    # Without another citation by author, or where numbers cite, it is text.
    assert read_report(f"It fell {mark}.\n\n## References\n\n{entries}").unresolved == []
    numbers = f"Sales rose [1], in Ayr too [2]. Others doubt it [3] {style.format('Fox', 2020)}. It fell {mark}."
    assert read_report(numbers + LIST).unresolved == []


def test_a_work_without_an_entry_beside_one_that_has_it_is_unresolved() -> None:
    report = read_report("Dams are old (Roe, 2020, 2023; Gil, 1999)." + WORKS)
    assert pairs(report) == [("Dams are old (Roe, 2020, 2023; Gil, 1999).", ["roe20"])]
    assert report.unresolved == ["Roe, 2023", "Gil, 1999"]


def test_a_missing_work_in_the_words_of_a_sentence_is_unresolved_if_its_author_has_others() -> None:
    report = read_report("Roe (2020) said so. Roe (2023) doubts it. Hamlet (1603) is old." + WORKS)
    assert report.unresolved == ["Roe (2023)"]


@pytest.mark.parametrize(
    "mark",
    [
        "\ue200cite\ue202turn9view0\ue202turn1search2\ue201",
        "citeturn0search3",
        "【31†L290-L298】",
        "[15†L10][5L23]",
        "[cite: 1, 2]",
        ":contentReference[oaicite:2]{index=2}",
        '<grok:render card_id="a1"><argument name="citation_id">7</argument></grok:render>',
    ],
)
def test_marks_that_lost_their_addresses_are_unresolved(mark: str) -> None:
    report = read_report(f"The dam is old. {mark} It is tall.")
    assert [(each.text, each.marks) for each in report.statements] == [
        ("The dam is old.", [mark]),
        ("It is tall.", []),
    ]
    assert report.unresolved == [mark]


@pytest.mark.parametrize(
    "text",
    [
        "The interval was [0.17, 0.48] wide.",
        "A paper [2011.03044] of [2011] says so.",
        "The value of x[3] is a[1].",
        "Uranium ⁸⁷Rb weighs 10⁻³ of it.",
        "The time grows as log² of the size.",
        "Codes such as [[9,1,3]] exist.",
        "A book [p. 5] says so (§ 4).",
        "See `list[2]` and $y_{[1]}$ here.",
    ],
)
def test_look_alikes_are_not_marks(text: str) -> None:
    report = read_report(text + LIST)
    assert (report.statements[0].marks, report.unresolved) == ([], [])


def test_rows_of_a_table_cite_by_their_columns_and_the_line_below() -> None:
    report = read_report(
        "| Town | People | Refs |\n|---|---:|---|\n| Ayr | 46 000 | 1 |\n| Wick | 7 000 | 2, 3 "
        "|\n\n"
        "Source: [Census](https://census.example/x)" + LIST
    )
    assert pairs(report) == [
        ("Ayr | 46 000 | 1", ["one", "census"]),
        ("Wick | 7 000 | 2, 3", ["two", "three", "census"]),
    ]


def test_each_part_has_its_own_list() -> None:
    part = "# {0}\n\nThe {0} is old [1].\n\n## Sources\n[1] https://{0}.example/a\n\n"
    assert [
        sources for _, sources in pairs(read_report(part.format("dam") + part.format("mill")))
    ] == [["dam"], ["mill"]]


def test_chatter_headings_code_and_lists_are_not_statements() -> None:
    report = read_report(
        "I'll look for dams. This matters.\n\nLet me search for more:\n\n# Old dams "
        "[2]\n\n**Overview**\n\nThe dam is old [1].\n\n"
        "Which one is older?\n\n```mermaid\nA --> B [1] "
        "https://code.example/x\n```\n\n![Plan](https://picture.example/p.png)\n\n"
        "If you like, I can write more." + LIST
    )
    assert pairs(report) == [("The dam is old [1].", ["one"])]
    assert report.uncited == [
        "https://two.example/b",
        "https://code.example/x",
        "https://three.example/c",
    ]


def test_sources_that_are_only_listed_are_uncited() -> None:
    report = read_report(
        "The dam is old and very tall.\n\n## Most useful sources to start with\n\n1. **First** "
        "(2016)  \n   https://one.example/a  \n"
        "   Says that dams are old.\n\n### Further ones\n2. A review: **Second** — "
        "https://two.example/b\n"
    )
    assert pairs(report) == [("The dam is old and very tall.", [])]
    assert report.uncited == ["https://one.example/a", "https://two.example/b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "大坝建于1936年。[1]它高221米[2]。\n\n参考文献：\n[1] https://one.example/a - 标题\n[2] "
            "https://two.example/b",
            [["one"], ["two"]],
        ),
        (
            "السد قديم جدا [1]. وهو في القاهرة؟ نعم [2].\n\nالمراجع\n[1] "
            "https://one.example/a\n[2] https://two.example/b",
            [["one"], [], ["two"]],
        ),
        (
            "Der Damm ist alt (Roe, 2020).\n\nQuellenverzeichnis\n\nRoe, J. (2020). Alt. "
            "https://roe.example/a",
            [["roe"]],
        ),
    ],
)
def test_other_languages(text: str, expected: list[list[str]]) -> None:
    sources = [sources for _, sources in pairs(read_report(text))]
    assert [each for each in sources if each] == [each for each in expected if each]


def test_marks_of_four_digits_need_an_entry() -> None:
    entries = "\n".join(f"{number}. https://n{number}.example/a" for number in range(1, 1003))
    report = read_report(
        "It is old [1001]. It broke [999-1001] in [1953].\n1936. It held.\n\n## "
        f"References\n{entries}"
    )
    assert pairs(report)[:2] == [
        ("It is old [1001].", ["n1001"]),
        ("It broke [999-1001] in [1953].", ["n999", "n1000", "n1001"]),
    ]
    assert report.unresolved == []


def test_many_headings_of_lists_are_read_in_linear_time() -> None:
    began = time.process_time()
    read_report("Sources\n\n" * 5000)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "piece", ["see ", "来源 ", "¹,", "contentReference", "[a](http://a.b/", "|-|\n", "<li>a</li>"]
)
def test_repeated_pieces_are_read_in_linear_time(piece: str) -> None:
    began = time.process_time()
    read_report(piece * (60_000 // len(piece)))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        "](" * 5000,
        "| " * 5000,
        "`" * 3000,
        "1" * 5000,
        "[1](" * 3000,
        "(" * 5000 + "2020",
        "Smith, " * 1000 + "(2020)",
        "Sources: " + "[1] https://a.example, " * 300,
    ],
)
def test_broken_markdown_is_read(text: str) -> None:
    read_report(text + "\n\nThe dam is old [1]." + LIST)


def test_offsets_are_those_of_the_text() -> None:
    text = (
        "- **Dam:** it is *old* ([Post](https://a.example/x)).  \n> Quoted, and tall [1].\n> It "
        "broke down." + LIST
    )
    statements = read_report(text).statements
    assert all(text[each.start : each.end] == each.text for each in statements)
    assert [each.text[:6] for each in statements] == ["**Dam:", "Quoted", "It bro"]
