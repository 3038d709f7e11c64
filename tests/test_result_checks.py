"""Results that are what a run leaves, and results that are not: of each kind of field, one changed."""

import json
from copy import deepcopy

import pytest
from evaluations import PAGE, started, stored, tree_nodes
from hypothesis import given, settings
from hypothesis import strategies as st
from projects import AGENT, TASK, Project, evaluate

from mind2web2.judgment_reading import StoreLookup
from mind2web2.judgments import FILE_NAME
from mind2web2.provenance import Provenance
from mind2web2.record_checks import RecordChecks
from mind2web2.result_checks import (
    result_faults,
    unexplained_skips,
    vote_fault,
    votes_in,
)
from mind2web2.seals import is_seal_broken, sealed
from mind2web2.staleness import PresentReader, provenance_of
from mind2web2.store_checks import judgments_of
from mind2web2.verification import BinaryEvalResult
from mind2web2.written_tree import only_tree, score_by_tree, written_tree

BODY = """
from pydantic import BaseModel
class Depth(BaseModel):
    metres: int | None = None
await evaluator.extract("depth", Depth, "depth")
facts = evaluator.add_sequential("facts", "facts")
deep = evaluator.add_leaf("deep", "deep", facts, critical=True)
await evaluator.verify("deep", deep, ["https://lake.example/depth"])
cold = evaluator.add_leaf("cold", "cold", facts)
await evaluator.verify("not cold", cold)
late = evaluator.add_leaf("late", "late", facts)
late.score, late.status = 1.0, "passed"
gate = evaluator.add_custom_node(False, "gate", "gate", evaluator.add_parallel("gated", "gated"))
await evaluator.verify("gated", evaluator.add_leaf("behind", "behind", evaluator.find_node("gated")))
lost = evaluator.add_leaf("lost", "lost")
await evaluator.verify("lost", lost, ["https://lake.example/gone"])
set_right = evaluator.add_leaf("set_right", "set right")
await evaluator.verify("not right", set_right)
set_right.score, set_right.status = 1.0, "passed"
evaluator.add_leaf("open", "open")
return evaluator.get_summary()
"""


SHOWN = {"kind": "web", "text_chars": 4, "text_chars_stored": 4, "images": 0}
OWN_CACHE = """
import tempfile
from mind2web2 import CacheFileSys
own = CacheFileSys(tempfile.mkdtemp())
own.put_web("https://own.example/a", "Depth", None)
evaluator = Evaluator()
evaluator.initialize("lake", client=client, answer=answer, global_cache=own, global_semaphore=semaphore)
await evaluator.verify("deep", evaluator.add_leaf("a", "a"), sources="https://own.example/a")
return evaluator.get_summary()
"""
STORED_ANEW = """
first, second = evaluator.add_leaf("a", "a"), evaluator.add_leaf("b", "b")
await evaluator.verify("deep", first, sources="https://lake.example/depth")
cache.put_web("https://lake.example/depth", "Another text", None)
await evaluator.verify("cold", second, sources="https://lake.example/depth")
return evaluator.get_summary()
"""
ONE_HALF = """
higher, lower = evaluator.add_leaf("a", "a"), evaluator.add_leaf("b", "b")
await evaluator.verify("not a", higher)
higher.score = 1.0
await evaluator.verify("b", lower)
lower.status = "failed"
return evaluator.get_summary()
"""
SET_AFTERWARDS = """
first, second = evaluator.add_custom_node(False, "a", "a"), evaluator.add_leaf("b", "b", critical=True)
await evaluator.verify("b", second)
first.score, first.status = 1.0, "passed"
return evaluator.get_summary()
"""
JUDGED_AGAIN = """
first = evaluator.add_leaf("a", "a", critical=True)
await evaluator.verify("not a", first)
await evaluator.verify("b", evaluator.add_leaf("b", "b"))
await evaluator.verify("a is fine", first)
return evaluator.get_summary()
"""
FOUND_AGAIN = """
first = evaluator.add_leaf("a", "a", critical=True)
await evaluator.verify("a", first, sources="https://lake.example/gone")
await evaluator.verify("b", evaluator.add_leaf("b", "b"))
await evaluator.verify("a", first, sources="https://lake.example/depth")
return evaluator.get_summary()
"""
ASKED_BESIDE = """
await evaluator.verify("not c", None)
await evaluator.verify("d", evaluator.add_leaf("d", "d", critical=True))
first = evaluator.add_leaf("a", "a", critical=True)
await evaluator.verify("not a", first)
await evaluator.verify("b", evaluator.add_leaf("b", "b"))
return evaluator.get_summary()
"""
ALIKE = """
for name, unseen in (("a", "\\u200b" * 5), ("b", "\\u200c\\u200c" + "\\u200b" * 3)):
    leaf = evaluator.add_leaf(name, name)
    await evaluator.verify(f"c {unseen} d", leaf, sources="https://lake.example/depth")
return evaluator.get_summary()
"""
COPIED = """
import copy
first = evaluator.add_leaf("a", "a")
await evaluator.verify("deep", first, sources="https://lake.example/depth")
twin = copy.deepcopy(first)
evaluator.add_parallel("beside", "beside").add_node(twin)
again = evaluator.add_leaf("c", "c")
await evaluator.verify("deep", again, sources="https://lake.example/depth")
return evaluator.get_summary()
"""
UNNAMED = """
evaluator = Evaluator()
evaluator.initialize("lake", client=client, answer=answer, global_cache=cache, global_semaphore=semaphore)
await evaluator.verify("deep", evaluator.add_leaf("a", "a"))
return evaluator.get_summary()
"""


class Judge:
    """Says no to claims with a not in them, once after a yes."""

    def __init__(self):
        """Have nothing asked yet."""
        self.asked = 0

    async def async_response(self, *, model, messages, response_format):  # noqa: ARG002
        """Return a verdict or an extraction."""
        if response_format is not BinaryEvalResult:
            return response_format(metres=80)
        is_denied = "\nnot " in str(messages[-1]["content"][-1]["text"])
        return BinaryEvalResult(reasoning="read", result=not is_denied)


@pytest.fixture
def project(tmp_path):
    """Return a project with an answer that rests on everything that there is."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(BODY)
    project.cache().put_web(PAGE, "80 m", None)
    return project


@pytest.fixture
async def result(project):
    """Return its result, as its file has it."""
    [outcome] = await evaluate(project, Judge())
    assert outcome.reason is None
    return json.loads(project.result_paths()[0].read_text(encoding="utf-8"))


def faults(result):
    """Return what is wrong with a result, in one text."""
    return "\n".join(result_faults(result, Provenance.model_validate(result["provenance"])))


async def test_what_a_run_leaves_has_no_fault(result):
    """Judged, failed for want of a page, skipped, superseded, set by the script, never decided."""
    assert faults(result) == ""
    nodes = tree_nodes(result)
    assert score_by_tree(result) == result["final_score"] == pytest.approx((0.5 * 0 + 0 + 0 + 1 + 0) / 5)
    assert nodes["late"]["superseded"]["status"] == "passed"
    assert nodes["set_right"]["overruled"]["status"] == "failed"
    assert nodes["late"]["evidence"]["decided_by"] == "script"
    assert result["undecided_leaves"] == ["open"]


@pytest.mark.parametrize(
    ("body", "is_stale"),
    [
        (UNNAMED, False),
        (OWN_CACHE, False),
        (STORED_ANEW, True),
        (ONE_HALF, False),
        (SET_AFTERWARDS, False),
        (JUDGED_AGAIN, False),
        (FOUND_AGAIN, False),
        (ASKED_BESIDE, False),
        (ALIKE, False),
        (COPIED, False),
    ],
)
async def test_whatever_a_script_does_nothing_is_wrong(project, body, is_stale):
    """Names left out, own pages, half a verdict, a prerequisite that passes later, equal claims, a copy."""
    project.add_script_body(body)
    [outcome] = await evaluate(project, Judge())
    assert outcome.reason is None
    root = project.paths.eval_results_root
    checks = RecordChecks(root, AGENT, judgments_of(root, AGENT, None), PresentReader(project.paths, AGENT))
    [check] = checks.task(TASK, [])
    assert [finding.kind for finding in check.findings] == (["stale"] if is_stale else [])
    assert outcome.result["agent_name"] == AGENT
    assert outcome.result["answer_name"] == "answer_1.md"


@pytest.mark.parametrize("body", [JUDGED_AGAIN, FOUND_AGAIN])
async def test_why_a_leaf_was_skipped_stays_to_be_seen(project, body):
    """Its prerequisite has passed since, and says what it was before; without that, the skip is wrong."""
    project.add_script_body(body)
    [outcome] = await evaluate(project, Judge())
    nodes = tree_nodes(outcome.result)
    assert (nodes["a"]["status"], nodes["a"]["earlier"]["status"]) == ("passed", "failed")
    assert nodes["b"]["status"] == "skipped"
    del nodes["a"]["earlier"]
    assert faults(sealed(outcome.result)) == "leaf 'b': skipped, though nothing that it depends on has failed"


@pytest.mark.parametrize("body", [JUDGED_AGAIN, FOUND_AGAIN])
async def test_results_of_earlier_versions_did_not_keep_why_a_leaf_was_skipped(project, body):
    """Then the skip is no fault, and named; one for no node at all is a fault in any version."""
    project.add_script_body(body)
    [outcome] = await evaluate(project, Judge())
    assert unexplained_skips(outcome.result) == []
    nodes = tree_nodes(outcome.result)
    del nodes["a"]["earlier"]
    assert unexplained_skips(outcome.result) == []
    del outcome.result["run"]["tree_format"]
    assert (faults(sealed(outcome.result)), unexplained_skips(outcome.result)) == ("", ["b"])
    nodes["b"]["evidence"]["reason"] = "because"
    assert faults(sealed(outcome.result)) == "leaf 'b': skipped, though nothing that it depends on has failed"
    assert unexplained_skips(outcome.result) == []


async def test_what_was_asked_beside_hides_no_skip_without_a_cause(project):
    """A judgment that the tree does not name says nothing about a prerequisite."""
    project.add_script_body(ASKED_BESIDE)
    [outcome] = await evaluate(project, Judge())
    assert faults(outcome.result) == ""
    tree_nodes(outcome.result)["b"]["evidence"]["reason"] = "not judged, because 'd' failed"
    assert faults(sealed(outcome.result)) == "leaf 'b': skipped, though nothing that it depends on has failed"


def places(value, place=()):
    """Yield each scalar's place in a result, one of each kind: numbers in lists count as the same."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*place, name))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from places(item, (*place, number))
    else:
        yield place


def at(result, place):
    """Return what holds the place's last step."""
    for step in place[:-1]:
        result = result[step]
    return result


async def test_a_change_of_any_field_shows(result):
    """Every value in the file but the digest itself, and the digest itself."""
    all_places = list(places(result))
    assert len(all_places) > 150
    for place in all_places:
        changed = deepcopy(result)
        old = at(changed, place)[place[-1]]
        at(changed, place)[place[-1]] = [old, 1]
        assert is_seal_broken(changed), place
        assert "changed after it was written" in faults_or_provenance(changed), place
    del result["run"]["content_sha256"]
    assert "its own digest (run.content_sha256) is gone" in faults(result)


def faults_or_provenance(result):
    """Return the faults of a result whose provenance may be no longer one."""
    return "\n".join(result_faults(result, None))


def on_leaf(name, **fields):
    """Return a change of a node's fields."""

    def change(result):
        tree_nodes(result)[name].update(fields)

    return change


def on_evidence(name, **fields):
    """Return a change of a leaf's evidence."""

    def change(result):
        tree_nodes(result)[name]["evidence"].update(fields)

    return change


def on_check(**fields):
    """Return a change of the check of the one page that was judged."""

    def change(result):
        tree_nodes(result)["deep"]["evidence"]["pages"][0].update(fields)

    return change


def on_vote(number, **fields):
    """Return a change of a vote on the answer."""

    def change(result):
        tree_nodes(result)["cold"]["evidence"]["votes"][number].update(fields)

    return change


def on_result(*place, value):
    """Return a change of anything else."""

    def change(result):
        at(result, place)[place[-1]] = value

    return change


def without(name, field):
    """Return a change that drops a node's field."""

    def change(result):
        del tree_nodes(result)[name][field]

    return change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (on_result("final_score", value=0.9), "final_score is 0.9, and by its tree 0.2"),
        (on_result("final_score", value="1"), "final_score '1' is no number from 0 to 1"),
        (on_leaf("root", score=0.5, status="partial"), "node 'root' is partial (0.5), and by the leaves"),
        (on_leaf("facts", score=1.0, status="passed"), "node 'facts' is passed (1), and by the leaves"),
        (on_leaf("facts", status="skipped"), "node 'facts' is skipped (0"),
        (on_leaf("facts", strategy="parallel"), "node 'late' is skipped (0), and by the leaves passed (1)"),
        (on_leaf("deep", critical=False), "node 'facts' is failed (0), and by the leaves partial"),
        (on_leaf("gated", critical=True), "node 'behind' is not critical, under critical 'gated'"),
        (
            on_leaf("cold", score=1.0, status="passed"),
            "leaf 'cold': passed (1), and by its evidence failed (0)",
        ),
        (on_leaf("cold", score=0.5), "leaf 'cold': score 0.5 does not go with status failed"),
        (on_leaf("deep", score=0.0, status="failed"), "leaf 'deep': failed (0), and by its evidence passed"),
        (
            on_leaf("behind", score=1.0, status="passed"),
            "leaf 'behind': passed (1), and by its evidence skip",
        ),
        (on_leaf("lost", score=1.0, status="passed"), "leaf 'lost': passed (1), and by its evidence failed"),
        (on_leaf("open", score=1.0, status="passed"), "leaf 'open': passed (1) without any evidence"),
        (on_check(page={**SHOWN, "sha256": "0" * 64}), f"{PAGE} was judged as another page than its prov"),
        (on_result("run", "judge_retries", value=-5), "-5 retries do not go with 7 requests for 7 judgments"),
        (on_result("run", "judge_requests", value=None), "0 retries do not go with None requests"),
        (without("cold", "evidence"), "leaf 'cold': failed (0) without any evidence"),
        (without("set_right", "overruled"), "leaf 'set_right': passed (1), and by its evidence failed (0)"),
        (without("late", "superseded"), ""),
        (on_leaf("late", superseded={"score": 0.0, "status": "skipped"}), "said to be superseded"),
        (on_leaf("facts", superseded={"score": 1.0, "status": "passed"}), "'facts' is said to be superseded"),
        (on_leaf("cold", overruled={"score": 0.0, "status": "failed"}), "said to be overruled by the script"),
        (on_leaf("deep", overruled={"score": 0.0, "status": "failed"}), "said to be overruled by the script"),
        (on_leaf("gate", overruled={"score": 0.0, "status": "failed"}), "said to be overruled by the script"),
        (on_leaf("cold", id=7), "its tree cannot be read: a child of 'facts' is no node: id"),
        (on_leaf("facts", children={}), "its tree cannot be read: children of 'facts' are no list"),
        (on_evidence("cold", votes=[]), "leaf 'cold': a verdict on the answer without a vote"),
        (on_evidence("cold", num_trials=5, votes=[]), "leaf 'cold': a verdict on the answer without a vote"),
        (on_evidence("cold", decided_by="prerequisite"), "leaf 'cold': failed (0), and by its evidence skip"),
        (
            on_evidence("behind", reason="because"),
            "leaf 'behind': skipped, though nothing that it depends on",
        ),
        (on_evidence("behind", reason="not judged, because 'deep' failed"), "skipped, though nothing"),
        (on_evidence("lost", pages=[]), "failed for want of pages, though not all of them"),
        (on_check(outcome="unavailable"), "and yet there are votes on it"),
        (on_check(outcome="not_supported"), "said to be not_supported, against its votes"),
        (on_check(url="https://b.example"), "https://b.example was judged, and its provenance does not have"),
        (on_check(page=None), "nothing says what of it was shown"),
        (on_check(votes=[]), "without a vote"),
        (on_vote(0, trial=3), "votes on the answer are missing, or there are too many"),
        (on_vote(0, supported=True), "2 votes on the answer settle nothing, of 3"),
        (on_vote(0, supported=True, declined="no"), "declined, and yet counts as support"),
        (on_vote(0, judgment=None), "leaf 'cold': a vote that names no judgment"),
        (on_result("judge_model", value="gpt-9"), "judge_model is 'gpt-9', and by its provenance 'judge-1'"),
        (on_result("provenance", "judge", "model", value="gpt-9"), "by its provenance 'gpt-9'"),
        (
            on_result("provenance", "pages", value={}),
            f"{PAGE} was judged, and its provenance does not have it",
        ),
        (on_result("provenance", "served", value=[]), "7 judgments are counted, 0 in its provenance"),
        (on_result("judge_usage", "judgments", value=1), "1 judgments are counted, 7 in its provenance"),
        (on_result("tree_statistics", "leaf_nodes", value=1), "tree_statistics are {"),
        (on_result("undecided_leaves", value=[]), "undecided_leaves are [], and by the tree ['open']"),
    ],
)
async def test_who_seals_a_change_is_found_out_by_the_rest(result, change, fault):
    """A score follows from the leaves, a leaf from its votes, counts from the tree; none stands alone."""
    change(result)
    found = faults(sealed(result))
    assert fault in found
    assert bool(found) is bool(fault)


def test_results_of_earlier_tools_are_asked_only_for_what_they_have():
    """A tree scores itself; evidence, digests and counts nobody kept."""
    evaluator = started()
    evaluator.add_custom_node(True, "a", "", critical=False)
    evaluator.add_custom_node(False, "b", "", critical=False)
    summary = json.loads(json.dumps(evaluator.get_summary()))
    del summary["undecided_leaves"], summary["tree_statistics"]
    for node in tree_nodes(summary).values():
        node.pop("evidence", None)
    assert list(result_faults(summary, None)) == []
    assert score_by_tree(summary) == 0.5
    tree_nodes(summary)["b"].update(score=1.0)
    assert "leaf 'b': score 1 does not go with status failed" in list(result_faults(summary, None))
    assert list(result_faults({"final_score": 0.5}, None)) == []
    assert score_by_tree({"final_score": 0.5}) is None


async def test_a_node_that_no_tree_has_may_block(tmp_path):
    """A script may name a node of its own as a prerequisite; and one that it has set right since."""
    evaluator = started(cache=stored(tmp_path))
    outside = type(evaluator.root)(id="outside", desc="", score=0.0, status="failed")
    await evaluator.verify("c", evaluator.add_leaf("a", ""), extra_prerequisites=[outside])
    lost = evaluator.add_leaf("lost", "")
    await evaluator.verify("c", lost, ["https://lake.example/gone"])
    await evaluator.verify("c", evaluator.add_leaf("b", ""), extra_prerequisites=[lost])
    lost.score, lost.status = 1.0, "passed"
    assert list(result_faults(json.loads(json.dumps(evaluator.get_summary())), None)) == []


@pytest.fixture
async def votes(project, result):
    """Return a result's votes with the replies that are stored for them."""
    found = list(votes_in(written_tree(only_tree(result))))
    assert [(cast.leaf, cast.vote.trial) for cast in found[:2]] == [("deep", 1), ("deep", 2)]
    assert len(found) == 6
    replies = StoreLookup(project.results / FILE_NAME).replies(cast.vote.judgment for cast in found)
    assert all(vote_fault(cast, replies[cast.vote.judgment]) is None for cast in found)
    return [(cast, replies[cast.vote.judgment][0]) for cast in found]


@pytest.mark.parametrize(
    ("on_vote", "on_cast", "on_reply", "fault"),
    [
        ({"supported": False}, {}, {}, f"leaf 'deep', vote 1 on {PAGE}: it is not what the judge said"),
        ({"reasoning": "other"}, {}, {}, "it is not what the judge said"),
        ({"declined": "no"}, {}, {}, "it is not what the judge said"),
        ({"trial": 2}, {}, {}, "the judgment that it names is about something else"),
        ({}, {"claim": "shallow"}, {}, "the judgment that it names is about something else"),
        ({}, {"url": None}, {}, "leaf 'deep', vote 1: the judgment that it names is about something else"),
        ({}, {}, {"purpose": "extract"}, "the judgment that it names is about something else"),
        ({}, {}, {"text": "true"}, "its judgment, as stored, is no verdict"),
        ({}, {}, {"text": '{"result": false, "reasoning": "read"}'}, "it is not what the judge said"),
        ({}, {}, {"outcome": "declined"}, "it is not what the judge said"),
        (
            {"supported": False, "reasoning": "", "declined": "no"},
            {},
            {"outcome": "declined", "text": "no"},
            None,
        ),
    ],
)
async def test_a_vote_is_what_is_stored_of_it(votes, on_vote, on_cast, on_reply, fault):
    """Verdict, reasoning, refusal, and what it was about."""
    cast, reply = votes[0]
    cast = cast._replace(vote=cast.vote.model_copy(update=on_vote), **on_cast)
    found = vote_fault(cast, [reply._replace(**on_reply)])
    assert found == fault if fault is None else fault in found
    assert vote_fault(votes[0][0], [reply._replace(text="another server's"), reply]) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


async def test_whatever_a_file_holds_is_checked_without_an_error(project, result):
    """A result of another tool's, or of nobody's, is wrong at worst."""
    [path] = project.result_paths()
    all_places = [place[:length] for place in places(result) for length in range(1, len(place) + 1)]
    reader = PresentReader(project.paths, AGENT)
    checks = RecordChecks(
        project.paths.eval_results_root,
        AGENT,
        judgments_of(project.paths.eval_results_root, AGENT, None),
        reader,
    )

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(st.lists(st.tuples(st.sampled_from(all_places), JSON), min_size=1, max_size=3))
    def check(edits):
        changed = deepcopy(result)
        for place, value in edits:
            try:
                at(changed, place)[place[-1]] = value
            except (TypeError, IndexError, KeyError):  # an earlier edit has taken the place away
                continue
        path.write_text(json.dumps(changed), encoding="utf-8")
        assert [found.answer_name for found in checks.task(TASK, ())] == ["answer_1.md"]
        assert all(isinstance(fault, str) for fault in result_faults(changed, provenance_of(changed)))

    check()
