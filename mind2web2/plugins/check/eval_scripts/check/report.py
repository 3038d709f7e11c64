"""The eval script of a check: each claim of the report against each page that the report cites for it."""

import logging
from typing import Any

from mind2web2 import CacheFileSys, LLMClient
from mind2web2.eval_runner import DualSemaphore
from mind2web2.plugins.check.rubric import check_report

TASK_ID = "report"


async def evaluate_answer(
    client: LLMClient,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: CacheFileSys,
    semaphore: DualSemaphore,
    logger: logging.Logger,
    model: str = "o4-mini",
) -> dict[str, Any]:
    """Check one report."""
    return await check_report(
        client, answer, agent_name, answer_name, cache, semaphore, logger, model
    )
