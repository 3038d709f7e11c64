"""The lowest score that an agent keeps if its judge passes wrong claims."""

import pytest
from viewer.made_results import leaf, result

from mind2web2.analysis.audited import audited_answer
from mind2web2.analysis.changed_pages import ChangedPages, Share
from mind2web2.analysis.false_pass_bound import false_pass_bound, wrong_passes
from mind2web2.results.result_file import ResultFile


@pytest.mark.parametrize(
    ("passed", "false_passes", "wrong"),
    # If 80% are true and 10% of the others pass, 82% pass, and 2 of 82 passes are wrong.
    [(0.82, 0.1, 2 / 82), (1.0, 0.1, 0.0), (0.1, 0.1, 1.0), (0.05, 0.1, 1.0), (0.0, 0.1, 0.0)],
)
def test_wrong_passes_follow_from_passes_and_false_passes(passed, false_passes, wrong):
    assert wrong_passes(passed, false_passes) == pytest.approx(wrong)


def report(high):
    share = Share(count=200, value=0.05, low=0.02, high=high)
    return ChangedPages(
        agent="bot",
        judge="judge-1",
        probes=200,
        noticed=share,
        false_passes=share,
        false_alarms=share,
        leaves={},
        survivors=(),
    )


def answers(count):
    """Answers with four leaves, of which the judge passes all but one."""
    leaves = [leaf(f"l{place}", f"Claim {place}", passed=place > 0) for place in range(4)]
    content = ResultFile.of(result("bot", "answer_1", leaves))
    return [audited_answer(f"task_{number}", "answer_1", 0.75, content) for number in range(count)]


def test_the_bound_is_the_mean_score_with_as_many_passes_failed():
    bound = false_pass_bound(answers(40), report(0.25))
    # Two thirds are true, and a quarter of the last third passes.
    assert bound.wrong_passes == pytest.approx(1 / 9)
    assert bound.raw == 0.75
    assert bound.low == pytest.approx(0.75 * 8 / 9, abs=0.01)
    assert "partial completion is 67% instead of 75%" in str(bound)


def test_without_an_interval_there_is_no_bound():
    assert false_pass_bound(answers(2), report(None)) is None
