"""Scores of trees with other verdicts on some leaves."""

from hypothesis import given
from hypothesis import strategies as st

from mind2web2.rubric.rescoring import Rescoring
from mind2web2.rubric.verdicts import Outcome, aggregate
from mind2web2.rubric.written_tree import WrittenNode

VERDICTS = st.sampled_from(
    [Outcome(1.0, "passed"), Outcome(0.0, "failed"), Outcome(0.0, "skipped")]
)


def nodes(children):
    """Return a strategy of nodes with these children."""
    strategy = st.sampled_from(["parallel", "sequential"])
    return st.builds(node, st.booleans(), strategy, VERDICTS, children)


def node(critical, strategy, verdict, children):
    """Return a node of a tree."""
    own = {"score": verdict.score, "status": verdict.status}
    return WrittenNode(critical=critical, strategy=strategy, children=children, **own)


LEAVES = nodes(st.just(()))
TREES = st.recursive(
    LEAVES,
    lambda below: nodes(st.lists(below, min_size=1, max_size=4).map(tuple)),
    max_leaves=12,
)


@given(TREES, st.data())
def test_only_the_paths_to_the_root_need_new_scores(tree, data):
    """The score is that of the whole tree, and each change starts from the same tree."""
    given_verdicts = st.dictionaries(
        st.sampled_from([id(leaf) for leaf in tree.leaves()]), VERDICTS
    )
    start = data.draw(given_verdicts)
    rescoring = Rescoring(tree, start)
    assert rescoring.score == aggregate(tree, start)[id(tree)].score
    for _ in range(2):
        changes = data.draw(given_verdicts)
        whole = aggregate(tree, {**start, **changes})[id(tree)].score
        assert rescoring.score_with(changes) == whole
