"""Shared by the nodes of a run: its budget, the limits of the judge's servers, the captures of each host.

A node works with its share for some seconds without asking, so that no failure elsewhere stalls it:

- dollars are leased from the database, a few percent of the budget at a time, recorded before they are spent
- each node keeps to its share of the limits that a server names, and all pause while a server refuses one
- all pages of a host are captured by one node, so that a host meets the politeness of one machine, and each
  page is captured once
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from mind2web2.judge.budget import Budget
from mind2web2.judge.shared_store import JudgmentDatabase
from mind2web2.llm_client import LLMClient

# Of the budget, leased at a time.
_LEASE_SHARE = 0.02


@dataclass(frozen=True)
class BudgetTerms:
    """The budget of a run, as its nodes lease it.

    Args:
        run: its name in the database.
    """

    run: str
    max_usd: float
    model: str


class LeasedBudget(Budget):
    """A node's part of the budget."""

    def __init__(self, terms: BudgetTerms, database: JudgmentDatabase) -> None:
        super().__init__(terms.max_usd, terms.model)
        self._allowed_usd = 0.0
        self._run = terms.run
        self._database = database
        self._leasing = asyncio.Lock()
        self._is_all_leased = False

    async def _extended(self, missing_usd: float) -> bool:
        allowed_usd = self._allowed_usd
        async with self._leasing:
            if self._allowed_usd > allowed_usd:  # a request that waited for this one's lease
                return True
            if self._is_all_leased:
                return False
            wanted_usd = max(missing_usd, self.max_usd * _LEASE_SHARE)
            leased_usd = await asyncio.to_thread(self._database.lease, self._run, wanted_usd, self.max_usd)
            self._allowed_usd += leased_usd
            self._is_all_leased = leased_usd < wanted_usd
            return leased_usd > 0


@dataclass(frozen=True)
class ClusterNews:
    """What a node is told about the others.

    Args:
        nodes: that send requests.
        pauses_s: for how long a server wants no request, by its name, as far as other nodes know.
    """

    nodes: int = 1
    pauses_s: Mapping[str, float] = field(default_factory=dict)


def share_limits(client: LLMClient, news: ClusterNews) -> None:
    """Keep to this node's share of the servers' limits."""
    for name, limiter in client.limiters().items():
        limiter.share = 1 / news.nodes
        if name in news.pauses_s:
            limiter.pause(news.pauses_s[name])


def pauses_of(client: LLMClient) -> dict[str, float]:
    """Return for how long each server that refused this node wants no request."""
    waits_s = {name: limiter.refused_for_s for name, limiter in client.limiters().items()}
    return {name: wait_s for name, wait_s in waits_s.items() if wait_s > 0}
