"""What a run is made of: from its settings to judge, pages, limits and processes."""

from __future__ import annotations

from mind2web2.judge.batch_jobs import BatchClient, BatchJobs
from mind2web2.judge.settings import JudgeSettings
from mind2web2.llm_client.base_client import LLMClient
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.runs.settings import RunSettings

# The folder of an agent's results that keeps the state of its batches.
BATCHES = "batches"


def judge_settings(settings: RunSettings) -> JudgeSettings:
    """Return the judge that the settings name, for a run that is no replay."""
    return JudgeSettings(
        settings.llm_provider,
        settings.model,
        settings.judge_temperature,
        settings.judge_reasoning_effort,
        batch=settings.batch,
        max_images=settings.max_images,
        extra_body=settings.judge_extra_body,
    )


def judge_client(settings: RunSettings, batches: BatchJobs | None = None) -> BatchClient | LLMClient | None:
    """Return the client of the judge that the settings name, ``None`` for a replay."""
    if batches is not None:
        return BatchClient(batches)
    if settings.is_replay:
        return None
    retry = RetryPolicy(outage_wait_s=settings.judge_outage_wait)
    return LLMClient(settings.llm_provider, is_async=True, base_url=settings.judge_server(), retry=retry)
