"""The batch jobs of a run; loaded for runs with ``--batch`` alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mind2web2.judge.batch_endpoints import BatchPace, batch_endpoints
from mind2web2.judge.batch_jobs import BatchJobs
from mind2web2.judge.batch_state import BatchFolder
from mind2web2.judge.store import JudgmentStore
from mind2web2.runs.settings import RunSettings
from mind2web2.scripts.passes import any_pass_at_work


def batch_jobs(settings: RunSettings, folder: Path, model: str, store: JudgmentStore) -> BatchJobs:
    """Return the jobs of a judge.

    Args:
        folder: keeps their state.
    """
    endpoints = batch_endpoints(settings.llm_provider, *settings.judge_base_url)

    async def is_stored(key: str) -> bool:
        return await store.get(key, endpoints.service.endpoint) is not None

    usual = BatchPace()
    first_poll_s = settings.batch_poll or usual.first_poll_s
    pace = replace(
        usual,
        first_poll_s=first_poll_s,
        longest_poll_s=max(usual.longest_poll_s, first_poll_s),
    )
    return BatchJobs(
        endpoints,
        BatchFolder(folder),
        model,
        pace,
        overwrite=settings.overwrite,
        is_stored=is_stored,
        is_at_work=any_pass_at_work,
    )
