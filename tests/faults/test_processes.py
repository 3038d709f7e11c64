"""A few rounds of several processes over the same folders; ``make faults`` has many more of them."""

from faults import processes


def test_two_evaluations_of_one_agent_share_the_work():
    """No answer is judged twice and no question paid for twice, also where one of them is killed."""
    figures = processes.evaluations(2, seed=3)
    assert figures.is_clean, figures
    assert (figures.answers, figures.without_result) == (2 * 9, 0)


def test_an_evaluation_beside_a_caching_run():
    """Each page is there once and whole, and is still what was judged."""
    figures = processes.beside_caching(1, seed=1)
    assert figures.is_clean, figures
    assert figures.answers == 1


def test_two_batch_runs_over_one_state_send_nothing_twice():
    """One of them works and the other is told so; what a killed one has sent, the next one fetches."""
    figures = processes.batches(2, seed=2)
    assert figures.is_clean, figures
    assert (figures.answers, figures.without_result) == (2, 0)
