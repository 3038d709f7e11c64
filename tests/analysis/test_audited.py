"""The judge against labels of people.

The tests cover an answer's score by its labels, and labels of several auditors.
"""

import pytest
from result_parts import made_from

from mind2web2.analysis.audit_report import audit_report
from mind2web2.analysis.audited import audited_answer, judge_quality, label_verdicts
from mind2web2.analysis.labelled_answers import score_by_labels, wanted_leaves
from mind2web2.analysis.labels import LabelFile, Verdicts
from mind2web2.results.result_file import ResultFile

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
    return leaf(name, passed=False, decided_by="prerequisite", blocked_by=behind, **more)


def answer(leaves, task="task"):
    """Return an answer whose root is the mean of its leaves behind their gates."""
    gates = [own["score"] for own in leaves if own["critical"]]
    others = [own["score"] for own in leaves if not own["critical"]]
    score = 0.0 if 0.0 in gates else sum(others) / len(others)
    root = {"id": "root", "desc": "", "critical": False, "strategy": "parallel"}
    root |= {"children": leaves, "score": score, "status": "partial"}
    document = {
        "eval_breakdown": [{"verification_tree": root}],
        "provenance": made_from(),
    }
    return audited_answer(task, "answer_1", score, ResultFile.of(document))


@pytest.fixture
def answers():
    """Return answers to 8 tasks, with 6 leaves, two of which the judge fails."""
    leaves = [leaf(f"leaf-{n}", passed=n > 1, critical=n == 5) for n in range(6)]
    return [answer(leaves, f"task-{task}") for task in range(8)]


def leaves_of(answers):
    """Return all leaves."""
    return [leaf for answer in answers for leaf in answer.leaves]


def labels(own, **words):
    """Return labels of an answer's leaves, ``y``, ``n`` or ``u``."""
    names = {leaf.name.leaf: leaf.name for leaf in own.leaves}
    passes = {names[name]: float(word == "y") for name, word in words.items() if word != "u"}
    undecidable = {names[name] for name, word in words.items() if word == "u"}
    return Verdicts(passes, frozenset(undecidable))


def test_labels_of_all_leaves_give_the_score_by_people():
    """The judge passed one of three."""
    own = answer([leaf("a"), leaf("b", passed=False), leaf("c", passed=False)])
    found = score_by_labels(own, labels(own, a="n", b="y", c="y"))
    assert (found.low, found.high) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert score_by_labels(own, labels(own, a="n", b="y")) is None
    agreeing = score_by_labels(own, labels(own, a="y", b="n", c="n"))
    assert agreeing.middle == pytest.approx(own.score)


def test_a_gate_decides_whether_leaves_behind_it_need_labels():
    """A gate that the judge failed wrongly, so that it skipped the leaves, decides as well."""
    gate = leaf("gate", passed=False, critical=True)
    own = answer([gate, skipped("deep", "gate"), skipped("wide", "gate")])

    def wanted(**words):
        return [one.name.leaf for one in wanted_leaves(own, labels(own, **words))]

    assert wanted() == ["gate", "deep", "wide"]
    assert wanted(gate="n") == []
    assert wanted(gate="y", wide="n") == ["deep"]
    assert score_by_labels(own, labels(own, gate="n")).middle == 0
    assert score_by_labels(own, labels(own, gate="y", deep="y", wide="n")).middle == 0.5


def test_gates_that_fail_wrongly_together_hold_an_answer_down():
    """Either alone would change nothing."""
    gates = [leaf(f"gate_{n}", passed=False, critical=True) for n in range(2)]
    own = answer([*gates, leaf("other"), leaf("more", passed=False)])
    found = score_by_labels(own, labels(own, gate_0="y", gate_1="y", other="y", more="n"))
    assert found.middle == 0.5


def test_a_leaf_that_fails_takes_those_that_depend_on_it_by_name():
    """A prerequisite of the script, outside of gates and sequences."""
    own = answer([leaf("first"), leaf("next", prerequisites=["first"]), leaf("third")])
    found = score_by_labels(own, labels(own, first="n", third="y"))
    assert found.middle == pytest.approx(1 / 3)


def test_undecidable_leaves_give_a_low_and_a_high_score():
    own = answer([leaf("a"), leaf("b"), leaf("c"), leaf("d")])
    divided = {**labels(own, a="y", b="n").passes, own.leaves[3].name: 0.5}
    verdicts = Verdicts(divided, labels(own, c="u").undecidable)
    found = score_by_labels(own, verdicts)
    assert (found.low, found.middle, found.high) == (0.25, 0.5, 0.75)


def test_each_wrong_label_counts_by_what_it_changes():
    """A gate takes the whole answer with it."""
    own = answer([leaf("gate", critical=True), leaf("a"), leaf("b", passed=False)])
    found = score_by_labels(own, labels(own, gate="y", a="y", b="n"))
    assert found.if_all_wrong == pytest.approx(-0.5 - 0.5 + 0.5)


def test_the_judges_errors_are_shares_of_its_labelled_verdicts(answers):
    passes = {leaf.name: 1.0 for leaf in leaves_of(answers)}
    hard = frozenset(leaf.name for leaf in answers[0].leaves)
    others = {name: one for name, one in passes.items() if name not in hard}
    quality = judge_quality(answers, Verdicts(others, hard), labels=0)
    assert (quality.labels, quality.undecidable) == (42, 6)
    assert quality.figures.agreement.value == pytest.approx(4 / 6)
    assert quality.figures.wrong_failures.value == 1
    assert quality.figures.wrong_passes.value == 0


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
    """Most decided labels win, half a verdict where as many are against it.

    The alphabet plays no part.
    """
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
    assert judge_quality(answers, label_verdicts(answers, labels[:1]), labels=1).stale == 1


def test_labels_survive_a_crash_and_the_first_counts(tmp_path, answers):
    """A line that was cut short is left out; a second label of a leaf was not blind."""
    file = LabelFile(tmp_path, AGENT, "ann")
    leaves = leaves_of(answers)[:2]
    file.append(leaves[0].name, leaves[0].seen_sha256, "n", note="hard to say", seconds=2.04)
    with file.path.open("ab") as stream:
        stream.write(b'{"agent": "bot", "ta')
    for own in leaves:
        file.append(own.name, own.seen_sha256, "y")
    assert [file.blind()[own.seen].label for own in leaves] == ["n", "y"]


def test_a_label_may_be_taken_back(tmp_path, answers):
    """The next one counts."""
    file = LabelFile(tmp_path, AGENT, "ann")
    first = leaves_of(answers)[0]
    file.append(first.name, first.seen_sha256, "n")
    file.append(first.name, first.seen_sha256, "n", is_taken_back=True)
    assert file.blind() == {}
    file.append(first.name, first.seen_sha256, "y")
    assert file.blind()[first.seen].label == "y"


def test_no_labels_are_no_report(tmp_path):
    """The command says how to make some."""
    assert audit_report(tmp_path, tmp_path, AGENT) is None
