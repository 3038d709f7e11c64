"""The loop that tries again what failed for a moment."""

import pytest

from mind2web2.utils.retry import PassingError, Tries, tried, tried_in_thread

AT_ONCE = Tries(3, first_wait_s=0)


class Work:
    """Fails as often as asked, then returns how often it was called."""

    def __init__(self, failures, error=PassingError):
        self.failures = failures
        self.error = error
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error(f"failure {self.calls}")
        return self.calls

    async def awaited(self):
        return self()


async def test_work_is_tried_until_it_succeeds():
    assert await tried(Work(2).awaited, AT_ONCE) == 3
    assert tried_in_thread(Work(2), AT_ONCE) == 3


async def test_the_last_failure_is_raised():
    with pytest.raises(PassingError, match="failure 3"):
        await tried(Work(3).awaited, AT_ONCE)
    with pytest.raises(PassingError, match="failure 1"):
        tried_in_thread(Work(1), Tries(3, first_wait_s=0, total_s=-1))


async def test_another_failure_is_raised_at_once():
    work = Work(1, ValueError)
    with pytest.raises(ValueError, match="failure 1"):
        await tried(work.awaited, AT_ONCE)
    assert work.calls == 1


def test_waits_double_up_to_the_longest():
    tries = Tries(9, first_wait_s=1.0, longest_wait_s=5.0)
    assert 0.75 <= tries.wait_s(1) <= 1.25
    assert 1.5 <= tries.wait_s(2) <= 2.5
    assert tries.wait_s(8) == 5.0
    assert tries.wait_s(1, wish_s=4.0) == 4.0
    assert tries.wait_s(1, wish_s=60.0) == 5.0
