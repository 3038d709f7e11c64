"""The eval script of a check: it checks each claim of the report on each page cited for it."""

import logging
from typing import Any

from mind2web2_check.rubric import check_report

TASK_ID = "report"


async def evaluate_answer(
    client: Any,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: Any,
    semaphore: Any,
    logger: logging.Logger,
    model: str = "o4-mini",
) -> dict[str, Any]:
    """Check one report."""
    return await check_report(
        client, answer, agent_name, answer_name, cache, semaphore, logger, model
    )
