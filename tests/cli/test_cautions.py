"""The cautions that a user reads beside a run's results."""

from result_parts import made_from

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.evaluate_report import print_scores
from mind2web2.results.answers import TaskWork
from mind2web2.results.cautions import CautionFacts, cautions
from mind2web2.results.result_file import ResultFile
from mind2web2.runs.answer import AnswerOutcome


def check(url, outcome, **more):
    """Return a page's check."""
    return {"url": url, "outcome": outcome, **more}


def claims(*pages):
    """Return a result with a claim for each page."""
    leaves = [
        {"id": page["url"], "evidence": {"decided_by": "judge", "pages": [page]}} for page in pages
    ]
    return {"eval_breakdown": [{"verification_tree": {"id": "root", "children": leaves}}]}


def told(result):
    """Return what a user is told of one result."""
    return cautions([CautionFacts.of("lake", "answer_1.md", ResultFile.of(result))])


def test_unavailable_pages_of_claims_and_extractions_are_counted():
    """Each page once, however often it was wanted, and those that an option brings."""
    result = claims(check("claimed", "unavailable"), check("both", "unavailable"))
    result["extractions"] = [
        {"name": "towns", "url": "both", "unavailable": "refused"},
        {"name": "lakes", "url": "both", "unavailable": "refused"},
        {"name": "hills", "url": "read", "unavailable": None},
    ]
    line = "2 cited pages unavailable (lake 2); claims on them are not supported"
    assert told(result) == [line]
    result["provenance"] = made_from(refused_pages=["both", "never asked for"])
    private = (
        "; 1 of them on this machine or its network (if you trust the answers, add "
        "--allow_private_network)"
    )
    assert told(result) == [f"{line}{private}"]


def test_mistakes_of_scripts_are_named_at_the_end():
    fault = "harlow.py, line 3: leaf 'hours' is never judged, and counts 0"

    def facts_of(task, number, **more):
        result = ResultFile.of({"final_score": 1.0, **more})
        return CautionFacts.of(task, f"answer_{number}.md", result)

    several = [facts_of("harlow", number, script_faults=[fault]) for number in (1, 2)]
    assert cautions(several)[-1] == f"{fault} (harlow/answer_1.md, harlow/answer_2.md)"


def test_failed_runs_are_in_the_table(capsys):
    task = TaskWork("lake", (), None, None, failed_runs={"answer_2.md": "the agent failed"})
    outcomes = [
        AnswerOutcome("lake", name, ResultFile.of({"final_score": score}), None)
        for name, score in (("answer_1.md", 1.0), ("answer_3.md", 0.5))
    ]
    print_scores(PlainConsole(), [task], outcomes)
    assert "1: 1  2: 0  3: 0.50" in (shown := capsys.readouterr().out) and " 0.50 " in shown


def test_answers_of_one_short_name_keep_their_scores(capsys):
    """The table leaves ``answer_`` out of names."""
    task = TaskWork("lake", (), None, None)
    outcomes = [
        AnswerOutcome("lake", name, ResultFile.of({"final_score": score}), None)
        for name, score in (("1.md", 0.25), ("answer_1.md", 0.75))
    ]
    print_scores(PlainConsole(), [task], outcomes)
    assert "1: 0.25  1: 0.75" in capsys.readouterr().out
