"""What is averaged although it was judged differently."""

from mind2web2.runs.comparability import mixture_warnings
from mind2web2.runs.metrics import agent_metrics
from mind2web2.runs.reader import ResultFacts
from mind2web2.runs.score_matrix import ScoredAnswer

ALIKE = {
    "judge": "o4-mini",
    "server": "a",
    "versions": {"mind2web2": "1.0", "python": "3.11.2"},
    "script_sha256": "1",
}


def answer(number, task="lake", model="o4-mini", **facts):
    """Return an answer that is judged like others, but for what is given."""
    return ScoredAnswer(
        task, f"answer_{number}.md", 1.0, judge_model=model, facts=ResultFacts(**ALIKE | facts)
    )


def warnings(*answers):
    """Return what is said of averaging these."""
    return list(mixture_warnings(answers))


def test_answers_judged_alike_are_not_remarked_upon():
    """Other tasks have other scripts."""
    assert warnings(answer(1), answer(2), answer(1, "wood", script_sha256="2")) == []


def test_different_models_are_named():
    """Their servers and versions differ all the same, which is not worth a line of its own."""
    assert warnings(
        answer(1), answer(2, model="gpt-5", judge="gpt-5", server="b", served=frozenset({"gpt-5-1"}))
    ) == [
        "scores of different judge models are averaged: gpt-5 (1 answers), o4-mini (1 answers); "
        "judge all answers with one model"
    ]


def test_one_model_with_different_parameters_or_servers_is_named():
    """As temperature and server may change its verdicts."""
    assert warnings(answer(1), answer(2), answer(3, judge="o4-mini temperature=0.5")) == [
        "scores of one judge model with different parameters or servers are averaged: "
        "o4-mini at a (2 answers), o4-mini temperature=0.5 at a (1 answers); judge all answers alike"
    ]


def test_another_server_may_be_another_model():
    """But a replay answers for any."""
    [warning] = warnings(answer(1), answer(2, server="b"))
    assert "different parameters or servers are averaged: o4-mini at a (1 answers), o4-mini at b" in warning
    assert warnings(answer(1), answer(2, server=None)) == []


def test_what_the_server_changed_is_named():
    """Models under one name, and backends, as their replies report."""
    assert warnings(
        answer(1, served=frozenset({"o4-1 (fp_1)"})), answer(2, served=frozenset({"o4-1 (fp_2)"}))
    ) == [
        "the judge was served in different versions, as its server reports: o4-1 (fp_1) (1 answers), "
        "o4-1 (fp_2) (1 answers)"
    ]


def test_many_backends_are_cut_short():
    """The most frequent are shown."""
    answers = [answer(number, served=frozenset({f"fp_{number}", "often"})) for number in range(1, 12)]
    [warning] = warnings(*answers)
    assert "often (11 answers)" in warning
    assert warning.endswith("and 6 more")


def test_different_versions_are_named():
    """Of this package first; those that agree are not."""
    changed = {"mind2web2": "2.0", "python": "3.11.2", "anthropic": "1"}
    assert warnings(
        answer(1, versions=ALIKE["versions"] | {"anthropic": "0"}), answer(2, versions=changed), answer(3)
    ) == [
        "results of different versions are averaged: mind2web2 1.0 (2 answers), 2.0 (1 answers); "
        "anthropic 0 (1 answers), 1 (1 answers)"
    ]


def test_different_scripts_of_one_task_are_named():
    """By the task; an unknown script is no different one."""
    answers = [
        answer(1),
        answer(2, script_sha256="2"),
        answer(1, "wood"),
        answer(2, "wood", script_sha256=None),
    ]
    assert warnings(*answers) == ["answers to one task were judged by different versions of its script: lake"]


def test_answers_that_are_not_averaged_do_not_matter():
    """Those without a score, and those outside of the task list."""
    unscored = ScoredAnswer("lake", "answer_2.md", judge_model="gpt-5", facts=ResultFacts(judge="gpt-5"))
    outside = answer(1, "wood", server="b")
    found = agent_metrics("bot", [answer(1), unscored, outside], ["lake"])
    assert not any("judge" in warning for warning in found.warnings)
