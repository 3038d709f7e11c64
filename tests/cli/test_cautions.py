"""What a user is told of a run's results."""

from mind2web2.answer_evaluation import AnswerOutcome
from mind2web2.cli.cautions import cautions


def outcome(*troubles, doubts=()):
    """Return an answer's outcome with a claim for each page with these troubles."""
    leaves = [
        {
            "id": f"leaf_{number}",
            "evidence": {"pages": [{"url": "u", "outcome": "not_supported", "page": {"troubles": kinds}}]},
        }
        for number, kinds in enumerate(troubles)
    ]
    tree = {"id": "root", "children": leaves}
    result = {"eval_breakdown": [{"verification_tree": tree}], "doubts": list(doubts)}
    return AnswerOutcome("lake", "answer_1.md", result, None)


def test_the_counts_of_suspect_pages_add_up():
    """A claim whose page has two troubles is counted once; the way out can be copied."""
    told = cautions([outcome(["challenge"], ["http_error", "challenge"], ["challenge"], [])], "do it again")
    assert told == [
        "claims that rest on suspect pages: 3 (challenge 2, challenge and http_error 1); look at these "
        "pages, and capture them again with: do it again"
    ]


def test_a_doubt_blames_nobody():
    """The server may have been at fault as well."""
    [told] = cautions([outcome(doubts=["https://lake.example: HTTP status 500"])], "")
    assert told == (
        "lake/answer_1.md: judged anew next time, as the fault may be this machine's or a moment's: "
        "https://lake.example: HTTP status 500"
    )
