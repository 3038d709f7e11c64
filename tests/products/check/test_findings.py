"""The verdicts of a check, the sentence with which its findings begin, and their figures."""

import pytest

from mind2web2.plugin import ResultFile
from mind2web2_check.figures import figures_of
from mind2web2_check.findings import CheckedReport
from mind2web2_check.statements import read_report
from mind2web2_check.verdicts import ClaimVerdict, SourceVerdict, StatementVerdict, verdicts_of


def statement(verdict, start=0, *, others=(), checkable=True):
    """Return a statement with a claim; others are verdicts of the same page on further claims."""
    claims = []
    for number, each in enumerate((verdict, *others)):
        url = f"https://a.example/#:~:text={number}"
        sources = [SourceVerdict(source=url, page=url, verdict=each)]
        is_cited = each != "no source given"
        claims.append(
            ClaimVerdict(claim="It is so.", verdict=each, sources=sources if is_cited else [])
        )
    return StatementVerdict(
        text="It is so.",
        start=start,
        end=start + 9,
        marks=[],
        checkable=checkable,
        verdict=verdict,
        claims=claims,
    )


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([], "no claim was found"),
        (["supported"], "1 of 1 checked claim holds"),
        (
            ["supported", "contradicted", "qualified", "contradicted"],
            "1 of 4 checked claims hold; 2 are contradicted, 1 is qualified",
        ),
        (
            ["supported", "not judged"],
            "1 of 1 checked claim holds; not checked: 1 not judged",
        ),
        (
            ["not judged", "no source given"],
            "not checked: 1 not judged, 1 no source given",
        ),
    ],
)
def test_the_parts_of_the_sentence_add_up(verdicts, sentence):
    report = CheckedReport(
        name="r",
        statements=[*map(statement, verdicts)],
        figures={},
        unresolved=[],
        uncited=[],
        judge=None,
    )
    assert report.summary == sentence


def test_each_figure_is_of_what_it_counts():
    verdicts = ("supported", "contradicted", "qualified", "not there", "page unavailable")
    checkable = [*verdicts, "not judged", "no source given"]
    statements = [statement(each, 10 * place) for place, each in enumerate(checkable)]
    statements.append(statement("supported", 90, checkable=False))
    figures = {name: str(figure) for name, figure in figures_of(statements).items()}
    assert {name: text.partition(" (")[0] for name, text in figures.items()} == {
        "precision": "25%",
        "coverage": "86%",
        "contradicted": "25%",
        "unavailable": "17%",
        "effective_citations": "3",
        "fact_accuracy_paper": "43%",
        "fact_accuracy_code": "60%",
    }
    sizes = [text.rpartition(" of ")[2] for text in figures.values()]
    assert sizes == ["4", "7", "4", "6", "3", "7", "5"]


def test_without_claims_there_is_no_share():
    counts = {"effective_citations": 0.0, "fact_accuracy_paper": 0.0}
    assert {name: each.value for name, each in figures_of([]).items() if each} == counts


@pytest.mark.parametrize(
    ("verdicts", "held"),
    [
        (["not there", "page unavailable"], [0, 1, 1]),
        (["page unavailable", "not there"], [0, 1, 1]),
        (["not there", "supported"], [1, 1, 1]),
        (["supported", "not there"], [1, 1, 1]),
        (["page unavailable", "not judged"], [0, 1, 0]),
    ],
)
def test_fact_counts_a_page_once_for_a_statement(verdicts, held):
    """The page holds for one part, or was read for one part: the order is of no matter."""
    figures = figures_of([statement(verdicts[0], others=verdicts[1:])])
    paper, code = figures["fact_accuracy_paper"], figures["fact_accuracy_code"]
    numbers = [figures["effective_citations"].value, paper.of or 1, code.of if code else 0]
    assert numbers == held


def votes_on(url, votes, *, troubles=(), claims=("It is so.",)):
    """Return a statement judged by one page; a vote is ``y`` or ``n``, then ``q`` if it quotes.

    ``Q`` stands for a quotation that limits the claim.
    """
    written = [
        {
            "trial": number,
            "supported": vote[0] == "y",
            "reasoning": f"{'QUALIFIED: ' if 'Q' in vote else ''}Vote {number}.",
            "quote": {"text": f"Quote {number}.", "match": "found", "source": "page"}
            | {"start": 0, "end": 8}
            if vote[1:]
            else None,
        }
        for number, vote in enumerate(votes.split())
    ]
    is_supported = 2 * votes.count("y") > len(written)
    check = {
        "url": url,
        "outcome": "supported" if is_supported else "not_supported",
        "page": {
            "kind": "web",
            "sha256": None,
            "text_chars": 9,
            "text_chars_stored": 9,
            "images": 0,
        }
        | {"troubles": list(troubles)},
        "votes": written,
    }
    leaves = [
        {
            "id": f"s0_claim{number}_source0",
            "desc": claim,
            "score": float(is_supported),
            "status": "passed" if is_supported else "failed",
            "evidence": {"decided_by": "judge", "claim": claim, "pages": [check]},
        }
        for number, claim in enumerate(claims)
    ]
    tree = {"id": "root", "desc": "r", "children": leaves}
    entry = {"number": 0, "checkable": False, "claims": claims}
    info = [{"claims": {"statements": [entry]}}]
    result = ResultFile.of({"eval_breakdown": [{"info": info, "verification_tree": tree}]})
    [found] = verdicts_of(read_report(f"It is so [1].\n\n[1]: {url}\n"), result)
    return found


DAM = "https://a.example/dam"


@pytest.mark.parametrize(
    ("votes", "troubles", "verdict"),
    [
        ("y y", (), "supported"),
        ("n n", (), "not there"),
        ("nq nq", (), "contradicted"),
        ("nq n", (), "not there"),
        ("nq n nq", (), "contradicted"),
        ("yq n nq", (), "not there"),
        ("nQ nq nQ", (), "qualified"),
        ("nQ nq", (), "contradicted"),
        ("n n", ("login_wall",), "page unavailable"),
        ("nq nq", ("login_wall",), "contradicted"),
        ("y y", ("login_wall",), "supported"),
        ("y y", ("http_error",), "page unavailable"),
        ("n n", ("missing_glyphs",), "not there"),
    ],
)
def test_the_votes_on_a_page_give_its_verdict(votes, troubles, verdict):
    assert votes_on(DAM, votes, troubles=troubles).verdict == verdict


def test_the_first_vote_of_the_majority_that_quotes_the_page_decides():
    [source] = votes_on(DAM, "nq y yq").sources
    assert (source.quote, source.reason) == ("Quote 2.", "Vote 2.")


def test_an_address_tells_that_only_an_abstract_was_read():
    addresses = ("https://arxiv.org/abs/2401.00001", DAM)
    assert [votes_on(url, "y y").sources[0].depth for url in addresses] == ["abstract", "full text"]


def test_a_statement_has_the_claims_that_were_judged():
    found = votes_on(DAM, "y y", claims=("It is.", "It is so."))
    assert [claim.claim for claim in found.claims] == ["It is.", "It is so."]
    assert not found.checkable
