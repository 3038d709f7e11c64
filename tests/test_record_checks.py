"""Results held against what they name: answers, scripts, pages, judgments."""

import json
import sqlite3

import pytest
from evaluations import PAGE, tree_nodes
from projects import AGENT, TASK, ClaimJudge, Project, evaluate, read_json

from mind2web2.cures import Cure
from mind2web2.errors import UsageError
from mind2web2.judgment_files import export_judgments
from mind2web2.judgments import FILE_NAME, JudgmentStore
from mind2web2.record_checks import RecordChecks
from mind2web2.result_checks import OTHER_SCORE, Finding
from mind2web2.seals import sealed
from mind2web2.selection import answer_files
from mind2web2.staleness import CHANGED, PresentReader
from mind2web2.store_checks import NOT_STORED, judgments_of

NO_STORE = Finding("missing", f"{NOT_STORED}: there is no store")


@pytest.fixture
async def project(tmp_path):
    """Return a project with two judged answers."""
    project = Project(tmp_path)
    project.add_script({"deep": ("deep", PAGE), "cold": ("cold", None)})
    for stem in ("answer_1", "answer_2"):
        project.add_answer(stem, f"The lake is deep and cold ({stem}).")
    project.cache().put_web(PAGE, "80 m", None)
    await evaluate(project, ClaimJudge(lambda claim: claim == "deep"))
    return project


def checked(project, judgments=None):
    """Return what is found of each answer, by its name."""
    root = project.paths.eval_results_root
    checks = RecordChecks(
        root, AGENT, judgments_of(root, AGENT, judgments), PresentReader(project.paths, AGENT)
    )
    answers, _ = answer_files(project.paths.answers_root / AGENT / TASK)
    return {check.answer_name: check for check in checks.task(TASK, answers)}


def found(project, judgments=None, answer="answer_1.md"):
    """Return kind and text of what is found of one answer; nothing of the other one."""
    checks = checked(project, judgments)
    assert all(not check.findings for name, check in checks.items() if name != answer)
    return [tuple(finding) for finding in checks[answer].findings]


def change_result(project, change, *, is_sealed=True):
    """Change the newest result of the first answer."""
    path = project.result_paths()[-1]
    content = read_json(path)
    change(content)
    path.write_text(json.dumps(sealed(content) if is_sealed else content), encoding="utf-8")


def in_store(project, statement, *values):
    """Change the store of judgments."""
    with sqlite3.connect(project.results / FILE_NAME) as connection:
        connection.execute(statement, values)
    connection.close()


async def test_a_run_s_own_results_are_right_and_hold(project):
    """The score is the tree's; after another run as well, which reuses them."""
    for check in checked(project).values():
        assert (check.findings, check.score, check.tree_score) == ((), 0.5, 0.5)
        assert check.path in project.result_paths(check.answer_name.removesuffix(".md"))
    await evaluate(project, ClaimJudge(lambda claim: claim == "deep"))
    assert not any(check.findings for check in checked(project).values())


def test_a_changed_score_is_wrong_whether_sealed_or_not(project):
    """The file's own digest tells it at once, the tree in any case."""
    change_result(project, lambda result: result.update(final_score=1.0), is_sealed=False)
    by_tree = "final_score is 1, and by its tree 0.5"
    assert found(project) == [("wrong", CHANGED), ("wrong", by_tree)]
    assert checked(project)["answer_1.md"].cure is Cure.EVALUATE
    change_result(project, lambda _result: None)
    assert found(project) == [("wrong", f"{OTHER_SCORE}{by_tree}")]
    assert (checked(project)["answer_1.md"].score, checked(project)["answer_1.md"].tree_score) == (1.0, 0.5)


def test_a_whole_verdict_that_is_made_up_is_not_what_the_judge_said(project):
    """Score, leaf, votes and counts fit one another; the stored judgments do not."""

    def make_up(result):
        nodes = tree_nodes(result)
        result["final_score"] = 1.0
        for name in ("root", "cold"):
            nodes[name].update(score=1.0, status="passed")
        for vote in nodes["cold"]["evidence"]["votes"]:
            vote["supported"] = True

    change_result(project, make_up)
    assert found(project) == [
        ("wrong", f"leaf 'cold', vote {trial}: it is not what the judge said, which is stored")
        for trial in (1, 2)
    ]


def test_a_judgment_that_is_not_stored_is_missing(project):
    """One that a vote names, or that an extraction names; it is to be brought back, or asked anew."""

    def rename(result):
        tree_nodes(result)["cold"]["evidence"]["votes"][0]["judgment"] = "0" * 64

    change_result(project, rename)
    assert found(project) == [("missing", f"{NOT_STORED}, 1 of 4: cold")]
    assert checked(project)["answer_1.md"].cure is Cure.BRING_BACK
    change_result(
        project, lambda result: result.update(extractions=[{"name": "facts", "judgment": "1" * 64}])
    )
    assert found(project) == [("missing", f"{NOT_STORED}, 2 of 5: cold, facts")]


def test_a_judgment_that_is_changed_in_the_store_is_wrong(project):
    """The result that rests on it is no longer what was said."""
    in_store(
        project,
        "UPDATE judgments SET text = ? WHERE claim = 'cold' AND trial = 1 AND answer_name = 'answer_1.md'",
        '{"reasoning": "read: cold", "result": true}',
    )
    assert found(project) == [
        ("wrong", "leaf 'cold', vote 1: it is not what the judge said, which is stored")
    ]


async def test_judgments_that_were_asked_anew_make_a_result_stale(project):
    """As by a run with --overwrite that was stopped before it wrote the result."""
    [path, *_] = project.result_paths()
    before = path.read_bytes()
    await evaluate(project, ClaimJudge(), overwrite=True, reuse=False)
    for newer in project.result_paths():
        newer.unlink()
    path.write_bytes(before)
    assert found(project) == [("stale", "judge: asked anew since")]


async def test_judgments_are_missing_wherever_they_went(project, tmp_path):
    """Whether the store is gone, or an evaluation that reused everything has made an empty one since."""
    (project.results / FILE_NAME).rename(tmp_path / "away.sqlite3")
    gone = checked(project).values()
    await evaluate(project, ClaimJudge())
    assert [len(project.result_paths(stem)) for stem in ("answer_1", "answer_2")] == [1, 1]
    empty = checked(project).values()
    assert {check.findings for check in gone} == {(NO_STORE,)}
    assert {check.findings for check in empty} == {(Finding("missing", f"{NOT_STORED}, 4 of 4: cold, deep"),)}
    assert {check.cure for check in (*gone, *empty)} == {Cure.BRING_BACK}


def test_judgments_are_of_the_server_that_judged(project):
    """Another one's do not stand in for them."""
    in_store(project, "UPDATE judgments SET endpoint = 'elsewhere' WHERE answer_name = 'answer_1.md'")
    assert found(project) == [("missing", f"{NOT_STORED}, 4 of 4: cold, deep")]


async def test_what_a_replay_names_is_looked_up_where_it_is_said_to_be(project, tmp_path):
    """In a file, or in a store; what is not there is missing, as nobody knows where it was."""
    with JudgmentStore(project.results / FILE_NAME) as store:
        export_judgments(store, tmp_path / "out.jsonl")
    (project.results / FILE_NAME).rename(tmp_path / "other.sqlite3")
    change_result(project, lambda result: result["provenance"]["judge"].update(endpoint="replay"))
    for path in ("out.jsonl", "other.sqlite3"):
        assert found(project, tmp_path / path) == []
    assert {check.findings for check in checked(project).values()} == {(NO_STORE,)}
    (tmp_path / "empty.jsonl").write_text("")
    assert {check.findings for check in checked(project, tmp_path / "empty.jsonl").values()} == {
        (Finding("missing", f"{NOT_STORED}, 4 of 4: cold, deep"),)
    }


@pytest.mark.parametrize(
    ("created", "is_named", "endpoint"),
    [("2001", True, None), ("2999", True, None), ("2001", True, "replay"), ("2001", False, "replay")],
)
def test_what_another_evaluation_was_told_is_nothing_to_go_by(project, tmp_path, created, is_named, endpoint):
    """In a named file, or where a replay need not have looked: it is as good as not there."""
    in_store(
        project,
        "UPDATE judgments SET created = ?, text = replace(text, 'read', 'seen') WHERE answer_name = ?",
        created,
        "answer_1.md",
    )
    if endpoint is not None:
        change_result(project, lambda result: result["provenance"]["judge"].update(endpoint=endpoint))
    judgments = tmp_path / "named.sqlite3" if is_named else None
    if is_named:
        (project.results / FILE_NAME).rename(judgments)
    assert found(project, judgments) == [("missing", f"{NOT_STORED}, 4 of 4: cold, deep")]
    assert checked(project, judgments)["answer_1.md"].cure is Cure.NAME_JUDGMENTS


def test_files_that_hold_no_judgments_are_refused(project, tmp_path):
    """With the name of the file."""
    (tmp_path / "damaged.sqlite3").write_bytes(b"damaged" * 1000)
    for name, message in (("gone.jsonl", "no judgments at "), ("damaged.sqlite3", "cannot be read")):
        with pytest.raises(UsageError, match=message):
            judgments_of(project.paths.eval_results_root, AGENT, tmp_path / name)


def test_the_copy_of_the_answer_is_the_one_that_was_judged(project):
    """Unless an evaluation that was stopped has put the present one there."""
    copy = project.folder() / "answer_1.md"
    copy.write_text("The lake is dry.")
    assert found(project) == [("wrong", "the copy answer_1.md beside it is not the answer that was judged")]
    project.add_answer("answer_1", "The lake is dry.")
    assert found(project) == [("stale", "answer: its text has changed")]
    copy.write_bytes(b"\xff")
    assert [kind for kind, _ in found(project)] == ["wrong", "stale"]
    copy.unlink()
    assert found(project)[0] == ("missing", "there is no copy answer_1.md of the answer that was judged")


def test_a_result_of_something_else_is_wrong(project):
    """One that was copied from another answer, or from another task."""
    other = read_json(project.result_paths("answer_2")[0])
    project.result_paths()[0].write_text(json.dumps(other), encoding="utf-8")
    assert found(project) == [
        ("wrong", "its answer_name is 'answer_2.md': it is the result of something else"),
        ("stale", "answer: its text has changed"),
    ]
    change_result(project, lambda result: result.update(answer_name="answer_1", task_id="pond"))
    assert found(project)[0] == ("wrong", "its task_id is 'pond': it is the result of something else")


def test_what_has_changed_since_is_stale(project):
    """For every answer that it bears on."""
    project.cache().put_web(PAGE, "81 m", None)
    assert {check.findings for check in checked(project).values()} == {
        (Finding("stale", f"pages changed: {PAGE}"),)
    }


def test_what_is_not_there_is_missing(project):
    """An answer that was never judged, a result that tells nothing of its making, one without a tree."""
    project.add_answer("answer_3")
    assert found(project, answer="answer_3.md") == [("missing", "no result")]
    project.add_answer("answer_3").unlink()
    change_result(project, lambda result: result.pop("provenance"))
    assert found(project) == [
        ("missing", "it does not say what it was made from, as results of earlier tools")
    ]
    change_result(project, lambda result: result.pop("eval_breakdown"))
    assert found(project)[0] == ("missing", "it has no tree that its score could follow from")
    change_result(project, lambda result: result.update(provenance={"script": 1}))
    assert ("wrong", "its provenance cannot be read") in found(project)


def test_votes_that_name_no_judgments_are_missing_what_they_rest_on(project):
    """As in results of earlier versions, and in one that is made to look like those."""

    def downgrade(result):
        del result["provenance"]["versions"], result["run"]["content_sha256"]
        for evidence in (node.get("evidence", {}) for node in tree_nodes(result).values()):
            pages = evidence.get("pages", [])
            for vote in [*evidence.get("votes", []), *(vote for page in pages for vote in page["votes"])]:
                del vote["judgment"]
            for page in pages:
                del page["page"]

    change_result(project, downgrade, is_sealed=False)
    assert found(project) == [("missing", "its votes name no judgments, so that they cannot be checked")]


def test_flags_of_the_answer_are_those_that_it_has(project):
    """They are found again in the copy of the answer that was judged."""
    change_result(project, lambda result: result.update(answer_flags=[{"kind": "nonsense", "excerpt": "x"}]))
    assert found(project) == [("wrong", "its answer_flags are not those of the answer, which has 0")]


def test_a_result_may_not_know_its_answer(project):
    """Earlier versions took the name that the script had, or had not, said."""
    change_result(project, lambda result: result.update(answer_name="unknown_answer"))
    assert found(project) == []


def test_a_damaged_result_is_wrong(project):
    """The one that counts; an older one beside it is of no interest."""
    newest = project.result_paths()[0].with_name("29990101_000000_answer_1.md.json")
    newest.write_text("{")
    assert found(project) == [("wrong", f"its newest result {newest.name} is damaged")]


async def test_an_answer_that_the_last_run_did_not_score_is_missing(project):
    """Though an earlier result is there."""
    project.add_script_body("raise RuntimeError('broken')")
    await evaluate(project, ClaimJudge())
    for check in checked(project).values():
        assert check.has("missing")
        assert any("RuntimeError: broken" in finding.text for finding in check.findings)
