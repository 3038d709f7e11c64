"""What the judge clients' tests share: quick retries."""

import pytest

from mind2web2.llm_client.retries import RetryPolicy


@pytest.fixture
def quick():
    """Give the usual number of tries, without the usual waits."""
    return RetryPolicy(
        tries=4,
        total_s=30,
        outage_wait_s=0.5,
        first_wait_s=0.001,
        longest_wait_s=0.01,
        request_timeout_s=20,
    )
