"""The answers of map and paper services to the requests of scripts."""

from __future__ import annotations

from functools import partial
from typing import Any

from mind2web2.api_tools.tool_arxiv import ArxivTool
from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.service_request import ServiceRequest
from mind2web2.judge.services import answer_service
from mind2web2.rubric.verdicts import ServiceAnswer


async def service_answer(request: ServiceRequest) -> Any:
    """Ask the service. Raises what the tools raise."""
    if request.name in ("geocode", "distance_matrix"):
        return await GoogleMapsTool().request(request.name, *request.arguments, **request.keywords)
    papers = ArxivTool(int(request.keywords.get("page_size", 100)))
    if request.name == "by_id":
        return await papers.search_arxiv_by_id(*request.arguments)
    return await papers.search_arxiv_by_title(*request.arguments)


async def stored_answer(
    judge: CachingJudge, request: ServiceRequest, source: tuple[str, str]
) -> tuple[Any, ServiceAnswer]:
    """Return the stored answer to a request, else the service's, and its record."""
    return await answer_service(judge, request, partial(service_answer, request), source)
