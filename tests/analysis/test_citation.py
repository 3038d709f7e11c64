"""The sentence about a score that a paper copies."""

import pytest

from mind2web2.analysis.citation import Making, paper_sentence
from mind2web2.analysis.metrics import agent_metrics
from mind2web2.results.scored_answer import ResultFacts, ScoredAnswer


@pytest.mark.parametrize(
    ("served", "judge"),
    [
        (set(), "judged by rule ("),
        ({"rule"}, "judged by rule (provider"),
        ({"rule", "rule-1"}, "judged by rule (served as rule-1) (provider"),
    ],
)
def test_other_names_of_the_judge_are_named(served, judge):
    facts = ResultFacts(judge="rule", served=frozenset(served))
    answers = [ScoredAnswer("lake", "answer_1.md", 1.0, judge_model="rule", facts=facts)]
    assert judge in paper_sentence(agent_metrics("bot", answers), answers, Making(), None)
