"""Warnings about averages over answers that were judged in different ways."""

import pytest

from mind2web2.analysis.metrics import agent_metrics
from mind2web2.analysis.score_matrix import mixture_warnings
from mind2web2.results.scored_answer import ResultFacts, ScoredAnswer

VERSIONS = {"mind2web2": "1.0", "python": "3.11.2"}
ALIKE = {"judge": "o4-mini", "server": "a", "versions": VERSIONS, "script_sha256": "1"}
WARM = "o4-mini temperature=0.5"


def answer(number, task="lake", model="o4-mini", **facts):
    """Return an answer that is judged like the others, apart from these facts."""
    return ScoredAnswer(
        task,
        f"answer_{number}.md",
        1.0,
        judge_model=model,
        facts=ResultFacts(**ALIKE | facts),
    )


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([answer(1), answer(2), answer(1, "wood", script_sha256="2")], [], id="alike"),
        pytest.param([answer(1), answer(2, server=None)], [], id="a replay"),
        pytest.param(
            [
                answer(1),
                answer(
                    2,
                    model="gpt-5",
                    judge="gpt-5",
                    server="b",
                    served=frozenset({"gpt-5-1"}),
                ),
            ],
            [
                "scores of different judge models are averaged: gpt-5 (1 answer), o4-mini (1 "
                "answer); judge all answers with one model"
            ],
            id="models",
        ),
        pytest.param(
            [answer(1), answer(2), answer(3, judge=WARM)],
            [
                "scores of one judge model with different parameters or servers are averaged: "
                f"o4-mini at a (2 answers), {WARM} at a (1 answer); judge all answers alike"
            ],
            id="parameters",
        ),
        pytest.param(
            [answer(1), answer(2, server="b")],
            [
                "scores of one judge model with different parameters or servers are averaged: "
                "o4-mini at a (1 answer), o4-mini at b (1 answer); judge all answers alike"
            ],
            id="servers",
        ),
        pytest.param(
            [
                answer(1, served=frozenset({"o4-1 (fp_1)"})),
                answer(2, served=frozenset({"o4-1 (fp_2)"})),
            ],
            [
                "the judge was served in different versions, as its server reports: o4-1 (fp_1) "
                "(1 answer), o4-1 (fp_2) (1 answer)"
            ],
            id="backends",
        ),
        pytest.param(
            [
                answer(1, versions=VERSIONS | {"anthropic": "0"}),
                answer(
                    2,
                    versions={"mind2web2": "2.0", "python": "3.11.2", "anthropic": "1"},
                ),
                answer(3),
            ],
            [
                "results of different versions are averaged: mind2web2 1.0 (2 answers), 2.0 (1 "
                "answer); anthropic 0 (1 answer), 1 (1 answer)"
            ],
            id="versions, of this package first",
        ),
        pytest.param(
            [
                answer(1),
                answer(2, script_sha256="2"),
                answer(1, "wood"),
                answer(2, "wood", script_sha256=None),
            ],
            ["answers to one task were judged by different versions of its script: lake"],
            id="scripts",
        ),
    ],
)
def test_each_difference_is_one_line(answers, expected):
    assert list(mixture_warnings(answers)) == expected


def test_many_backends_are_cut_short():
    """The most frequent are shown."""
    answers = [
        answer(number, served=frozenset({f"fp_{number}", "often"})) for number in range(1, 12)
    ]
    [warning] = mixture_warnings(answers)
    assert "often (11 answers)" in warning
    assert warning.endswith("and 6 more")


def test_answers_that_are_not_averaged_do_not_matter():
    unscored = ScoredAnswer(
        "lake", "answer_2.md", judge_model="gpt-5", facts=ResultFacts(judge="gpt-5")
    )
    outside = answer(1, "wood", server="b")
    found = agent_metrics("bot", [answer(1), unscored, outside], ["lake"])
    assert not any("judge" in warning for warning in found.warnings)
