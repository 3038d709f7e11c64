"""The rubric of a report: a leaf for each claim and page.

It runs in the process of the eval script.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from mind2web2 import Evaluator, create_evaluator
from mind2web2.plugin import only_known
from mind2web2_check.claims import (
    AGAIN,
    PROMPT,
    Chunk,
    ChunkClaims,
    StatementClaims,
    chunk_numbers,
    chunks_of,
    claims_of,
    fitting,
)
from mind2web2_check.statements import Statement, read_report

CLAIMS = "claims"
_KEPT_IN_DOI = "/:;()%._-~+,!*'@&=$#?"
_WRAPPED = re.compile(r"https?://(?:www\.)?google\.[a-z.]{2,6}/url\?", re.IGNORECASE)
# The report is not part of the questions, so that a report that changes asks only about what
# changed.
_TASK = "Do the pages that a report cites say what the report says?"
_ANSWER = "The claim is a part of the report. The rest of the report is not shown."
_INSTRUCTION = (
    "If the page says something else than the claim, quote the passage that says otherwise."
    " If the page says it only in part, of fewer things, under a condition or less strongly, quote"
    " that passage, and begin your reasoning with the word QUALIFIED."
    " If the page does not say at all whether the claim is true, leave the quote empty."
)


async def check_report(
    client: Any,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: Any,
    semaphore: Any,
    logger: logging.Logger,
    model: str,
) -> dict[str, Any]:
    """Split a report into claims, verify each on each page cited for it, and return the summary."""
    report = read_report(answer)
    evaluator = Evaluator()
    root = evaluator.initialize(
        task_id="report",
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description=_TASK,
        answer=_ANSWER,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
    )

    async def split(chunk: Chunk) -> list[StatementClaims]:
        extractor, _ = create_evaluator(
            client=client,
            task_description=_TASK,
            answer=chunk.text,
            global_cache=cache,
            global_semaphore=semaphore,
            logger=logger,
            default_model=model,
        )
        name = f"{CLAIMS}_{chunk.first}"
        reply = await extractor.simple_extract(PROMPT, ChunkClaims, extraction_name=name)
        only_known(reply.statements)
        found = fitting(chunk, reply)
        wrong = sorted(set(chunk_numbers(chunk)) - found.keys())
        if wrong:
            again = AGAIN.format(", ".join(map(str, wrong)))
            reply = await extractor.simple_extract(
                PROMPT, ChunkClaims, again, extraction_name=f"{name}_again"
            )
            only_known(reply.statements)
            found = fitting(chunk, reply) | found
        return claims_of(chunk, found)

    replies = await asyncio.gather(*map(split, chunks_of(report.statements)))
    entries = [entry for reply in replies for entry in reply]
    evaluator.add_custom_info({"statements": [each.model_dump() for each in entries]}, CLAIMS)
    verifications = [
        evaluator.verify(**question, additional_instruction=_INSTRUCTION)
        for entry in entries
        for question in _questions(evaluator, entry, report.statements[entry.number])
    ]
    if not verifications:
        evaluator.add_custom_node(False, "source", "The report cites a source.", root)
    await asyncio.gather(*verifications)
    return evaluator.get_summary()


def _questions(
    evaluator: Evaluator, entry: StatementClaims, statement: Statement
) -> list[dict[str, Any]]:
    """Add a leaf for each claim and source of a statement, and return the arguments of each."""
    if not statement.sources:
        return []
    node = evaluator.add_parallel(
        id=f"s{entry.number}", desc=statement.text, parent=evaluator.root, critical=False
    )
    questions = []
    for claim_number, claim in enumerate(entry.claims):
        for source_number, source in enumerate(statement.sources):
            leaf = evaluator.add_leaf(
                id=leaf_id(entry.number, claim_number, source_number),
                desc=claim,
                parent=node,
                critical=False,
            )
            questions.append({"claim": claim, "node": leaf, "sources": page_address(source)})
    return questions


def leaf_id(statement: int, claim: int, source: int) -> str:
    """Return the id of the leaf that holds a claim of a statement against one of its sources."""
    return f"s{statement}_claim{claim}_source{source}"


def page_address(source: str) -> str:
    """Return the address at which a browser finds a source."""
    if found := re.fullmatch(r"(?:doi\s*:\s*)?(10\..*)", source, re.IGNORECASE):
        return f"https://doi.org/{quote(found[1], safe=_KEPT_IN_DOI)}"
    if found := re.fullmatch(r"arxiv\s*:\s*(.*)", source, re.IGNORECASE):
        return f"https://arxiv.org/abs/{found[1]}"
    if _WRAPPED.match(source):
        # Google Docs writes all links so; the page there only names the address.
        asked = parse_qs(urlsplit(source).query)
        return next(iter(asked.get("q", []) + asked.get("url", [])), source)
    return source
