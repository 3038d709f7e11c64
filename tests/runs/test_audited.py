"""The judge against labels of people: the sample, labels of several auditors, and the corrected score."""

import pytest
from result_parts import made_from

from mind2web2.cli.results.audit import score_lines
from mind2web2.runs.audit_report import audit_report
from mind2web2.runs.audited import audited_answer, judge_quality, label_verdicts, sample
from mind2web2.runs.corrected import corrected_score
from mind2web2.runs.labels import LabelFile, Verdicts
from mind2web2.runs.result_file import ResultFile

AGENT = "bot"


def leaf(name, *, passed=True, critical=False, **evidence):
    """Return a leaf that two votes decided, or that was skipped if the evidence says so."""
    votes = [{"trial": trial, "supported": passed, "reasoning": ""} for trial in (1, 2)]
    found = {
        "decided_by": "judge",
        "claim": f"Claim of {name}.",
        "num_trials": 3,
        "votes": votes,
    } | evidence
    status = "passed" if passed else "failed"
    if found["decided_by"] == "prerequisite":
        found["votes"], status = [], "skipped"
    fields = {
        "id": name,
        "desc": "",
        "critical": critical,
        "strategy": "parallel",
        "children": [],
    }
    return fields | {"score": float(passed), "status": status, "evidence": found}


def skipped(name, behind, **more):
    """Return a leaf that was skipped behind another one."""
    reason = f"not judged, because '{behind}' failed"
    return leaf(name, passed=False, decided_by="prerequisite", reason=reason, **more)


def answer(task, leaves, name="answer_1", score=None, text="1"):
    """Return an answer whose root is the mean of its leaves behind their gates."""
    gates = [own["score"] for own in leaves if own["critical"]]
    others = [own["score"] for own in leaves if not own["critical"]]
    by_tree = 0.0 if 0.0 in gates else sum(others) / len(others)
    root = {
        "id": "root",
        "desc": "",
        "critical": False,
        "strategy": "parallel",
        "children": leaves,
    }
    root |= {"score": by_tree, "status": "partial"}
    document = {
        "eval_breakdown": [{"verification_tree": root}],
        "provenance": made_from(answer_sha256=text),
    }
    return audited_answer(
        task, name, by_tree if score is None else score, ResultFile.of(document)
    )


@pytest.fixture
def answers():
    """Return 2 answers to each of 8 tasks, with 6 leaves, two of which the judge fails."""
    return [
        answer(
            f"task-{task}",
            [leaf(f"leaf-{n}", passed=n > 1, critical=n == 5) for n in range(6)],
            name,
        )
        for task in range(8)
        for name in ("answer_1", "answer_2")
    ]


def leaves_of(answers):
    """Return all judged leaves."""
    return [leaf for answer in answers for leaf in answer.leaves]


def labelled(leaves, passes):
    """Return labels as a function of the leaf gives them."""
    return Verdicts({leaf.name: float(passes(leaf)) for leaf in leaves}, frozenset())


def test_every_beginning_of_a_sample_is_a_sample(answers):
    """The same for one seed, with all strata from early on; a larger one adds to it."""
    leaves = leaves_of(answers)
    one = sample(leaves, 30, seed=1)
    assert one == sample(leaves[::-1], 30, seed=1) != sample(leaves, 30, seed=2)
    assert len({leaf.name for leaf in one}) == 30
    assert {leaf.stratum for leaf in one[:10]} == {leaf.stratum for leaf in leaves}
    assert {leaf.name for leaf in one} <= {
        leaf.name for leaf in sample(leaves, 60, seed=1)
    }
    assert len(sample(leaves, 500, seed=1)) == 96


def test_labels_of_all_leaves_give_the_score_by_people(answers):
    """Whatever the judge's score is; the interval of these tasks is a point."""
    found = corrected_score(answers, labelled(leaves_of(answers), lambda _: True))
    assert found.mean.raw == pytest.approx(3 / 5)
    assert found.value == pytest.approx(1)
    assert (found.these_tasks.low, found.these_tasks.high) == pytest.approx((1, 1))
    quality = judge_quality(answers, labelled(leaves_of(answers), lambda _: True))
    assert quality.figures.agreement.value == pytest.approx(4 / 6)
    assert (
        quality.figures.wrong_failures.value,
        quality.figures.wrong_passes.value,
    ) == (1, 0)


def test_an_audit_that_stops_early_corrects_as_far(answers):
    """Labels stand for all leaves, not for those of the sample that was planned."""
    leaves = leaves_of(answers)
    for given in (24, 36, 60):
        found = corrected_score(
            answers, labelled(sample(leaves, 96, seed=3)[:given], lambda _: True)
        )
        assert found.mean.estimate == pytest.approx(1, abs=0.01)
        assert found.these_tasks.low <= 1 <= found.these_tasks.high + 1e-9


def test_labels_of_few_tasks_give_no_value(answers):
    """Nor an interval."""
    few = [leaf for leaf in leaves_of(answers) if leaf.name.task < "task-5"]
    found = corrected_score(answers, labelled(few, lambda _: True))
    assert (found.value, found.these_tasks, found.tasks_at_large) == (None, None, None)


@pytest.mark.parametrize(
    ("tasks", "given", "wanted"),
    [
        (1, 12, None),
        (1, 7, "all 5 other leaves for a corrected score, as there are fewer than 6 tasks"),
        (8, 36, "leaves of 3 more tasks for an interval"),
        (8, 96, None),
    ],
)  # fmt: skip
def test_labels_are_wanted_where_they_can_be_given_and_would_help(
    answers, tasks, given, wanted
):
    """Of six tasks, or of all leaves where there are fewer; leaves that are undecidable have their labels."""
    own = answers[: 2 * tasks]
    leaves = leaves_of(own)[:given]
    found = corrected_score(own, labelled(leaves, lambda leaf: leaf.passed))
    lines = [text for text in score_lines(found, "") if "wanted" in text]
    assert lines == ([] if wanted is None else [f"More labels wanted: {wanted}."])
    passes = labelled(leaves[1:], lambda leaf: leaf.passed).passes
    undecided = corrected_score(own, Verdicts(passes, frozenset([leaves[0].name])))
    assert [text for text in score_lines(undecided, "") if "wanted" in text] == lines


def test_labels_that_agree_with_the_judge_leave_its_score(answers):
    """The interval is open to errors that no label shows."""
    leaves = sample(leaves_of(answers), 40, seed=1)
    agreeing = corrected_score(answers, labelled(leaves, lambda leaf: leaf.passed))
    assert agreeing.mean.estimate == pytest.approx(agreeing.mean.raw)
    assert agreeing.these_tasks.low < agreeing.mean.raw < agreeing.these_tasks.high
    assert agreeing.mean.more_wanted(0.02) > 0


def test_gates_that_fail_wrongly_together_hold_an_answer_down():
    """Either alone would change nothing."""
    gates = [leaf(f"gate-{n}", passed=False, critical=True) for n in range(2)]
    own = [
        answer(f"task-{n}", [*gates, leaf("other"), leaf("more", passed=False)])
        for n in range(8)
    ]
    passes = labelled(leaves_of(own), lambda leaf: leaf.name.leaf != "more")
    assert corrected_score(own, passes).value == pytest.approx(0.5)


def test_leaves_behind_a_gate_are_judged_or_bounded():
    """Without labels of them the interval allows for either verdict, and no value is shown."""
    own = [
        answer(
            f"task-{n}",
            [leaf("gate", passed=False, critical=True), skipped("deep", "gate")],
        )
        for n in range(8)
    ]
    gates = labelled(leaves_of(own), lambda _: True)
    found = corrected_score(own, gates)
    assert (found.value, len(found.behind)) == (None, 8)
    assert (found.these_tasks.low, found.these_tasks.high) == pytest.approx((0, 1))
    half = {one.skipped[0].name: float(n < 4) for n, one in enumerate(own)}
    found = corrected_score(own, Verdicts({**gates.passes, **half}, frozenset()))
    assert (found.value, found.behind) == (pytest.approx(0.5), ())


def test_a_leaf_that_fails_takes_those_that_depend_on_it_by_name():
    """A prerequisite of the script, outside of gates and sequences."""
    dependent = leaf("dependent", prerequisites=["first"])
    own = [
        answer(f"task-{n}", [leaf("first"), dependent, leaf("third")]) for n in range(8)
    ]
    found = corrected_score(
        own, labelled(leaves_of(own), lambda leaf: leaf.name.leaf != "first")
    )
    assert found.value == pytest.approx(1 / 3)


def test_undecidable_leaves_are_missing_and_both_extremes_are_given(answers):
    """They do not count as the judge being right."""
    leaves = leaves_of(answers)
    hard = frozenset(
        leaf.name for leaf in leaves if not leaf.passed and leaf.name.task < "task-4"
    )
    others = labelled(
        [leaf for leaf in leaves if leaf.name not in hard], lambda _: True
    )
    found = corrected_score(answers, Verdicts(others.passes, hard))
    assert found.mean.estimate == pytest.approx(1)
    assert found.if_undecidable == pytest.approx((0.8, 1))
    quality = judge_quality(answers, Verdicts(others.passes, hard))
    assert (quality.labels, quality.undecidable) == (96 - len(hard), len(hard))


@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ("y", 1.0),
        ("yu", 1.0),
        ("uy", 1.0),
        ("yn", 0.5),
        ("ny", 0.5),
        ("yny", 1.0),
        ("nny", 0.0),
        ("uu", None),
    ],
)
def test_several_auditors(tmp_path, answers, given, passes):
    """Most decided labels win, half a verdict where as many are against it; the alphabet plays no part."""
    first = leaves_of(answers)[0]
    for name, verdict in zip("abc", given, strict=False):
        LabelFile(tmp_path, AGENT, name).append(first.name, first.seen_sha256, verdict)
    labels = [LabelFile(tmp_path, AGENT, name).blind() for name in "abc"]
    found = label_verdicts(answers, labels)
    assert found.passes.get(first.name) == passes
    assert (first.name in found.undecidable) is (passes is None)


def test_stale_labels_of_one_auditor_do_not_hide_anothers(tmp_path, answers):
    """A label rests on the claim and the pages that the person saw."""
    first = leaves_of(answers)[0]
    LabelFile(tmp_path, AGENT, "ann").append(first.name, "another claim", "n")
    LabelFile(tmp_path, AGENT, "bob").append(first.name, first.seen_sha256, "y")
    labels = [LabelFile(tmp_path, AGENT, name).blind() for name in ("ann", "bob")]
    assert label_verdicts(answers, labels).passes == {first.name: 1.0}
    assert (
        judge_quality(answers, label_verdicts(answers, labels[:1]), labels=1).stale == 1
    )


def test_labels_survive_a_crash_and_the_first_counts(tmp_path, answers):
    """A line that was cut short is left out; a second label of a leaf was not blind."""
    file = LabelFile(tmp_path, AGENT, "ann")
    leaves = leaves_of(answers)[:2]
    file.append(
        leaves[0].name, leaves[0].seen_sha256, "n", note="hard to say", seconds=2.04
    )
    with file.path.open("ab") as stream:
        stream.write(b'{"agent": "bot", "ta')
    for own in leaves:
        file.append(own.name, own.seen_sha256, "y")
    assert [file.blind()[own.seen].label for own in leaves] == ["n", "y"]


def test_no_labels_are_no_report(tmp_path):
    """The command says how to make some."""
    assert audit_report(tmp_path, tmp_path, AGENT) is None
