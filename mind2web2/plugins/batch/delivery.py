"""The part of the hook ``deliveries``.

It loads the rest of the plugin for runs that have batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from mind2web2.judge.delivery import Delivery
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.runs.delivery import Sender
from mind2web2.runs.settings import RunSettings

# Runs load this module if they send batches or find some of an earlier run.
_SENDER_MODULE = "mind2web2.plugins.batch.sender"
# The folder in an agent's results that keeps the state of its batches.
_BATCHES = "batches"


class BatchDelivery:
    """Sends the questions of a run as batch jobs."""

    # Waiting for the first replies before a budget trusts its estimates would take a day.
    delivery = Delivery(price_share=0.5, caution=2.0, is_collected=True)

    def sender(
        self,
        settings: RunSettings,
        judges: Sequence[JudgeSpec],
        folder: Path,
        store: JudgmentStore,
    ) -> Sender:
        """Return the jobs of a run; their state is in a folder beside the agent's results."""
        sender: Sender = import_module(_SENDER_MODULE).batch_sender(
            settings, judges, folder / _BATCHES, store
        )
        return sender

    async def left_open(
        self, settings: RunSettings, folder: Path, store: JudgmentStore
    ) -> str | None:
        """Return a warning if batches are open whose questions this run asks again."""
        if not (folder / _BATCHES).is_dir():
            return None
        open_jobs = import_module(_SENDER_MODULE).left_open
        warning: str | None = await open_jobs(settings, folder / _BATCHES, store)
        return warning


DELIVERY = BatchDelivery()
