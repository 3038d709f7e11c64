"""The surroundings of an eval script's tools: the run's network, and answers of services."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mind2web2.capture.models import NetworkSettings
    from mind2web2.judge.service_request import AnswerRequest, AskService, ServiceRequest


def _report_nothing(_: str) -> None:
    """Outside of a run, nobody waits for a report."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts that a run gives to the tools of its scripts.

    Args:
        network: of downloads; ``None`` for the default, by which only the public internet can be
            reached.
        report_refused: called with each URL that may not be downloaded because its address is
            private.
        report_doubt: called with each document that is unavailable only for now, and the reason.
        answer_service: answers requests of map and paper services; ``None`` where the service
            itself does.
    """

    network: NetworkSettings | None = None
    report_refused: Callable[[str], None] = _report_nothing
    report_doubt: Callable[[str], None] = _report_nothing
    answer_service: AnswerRequest | None = None


_OUTSIDE_OF_RUNS = Surroundings()
# A context variable, since scripts make their PDF parsers and other tools themselves, which know no
# run.
_surroundings: ContextVar[Surroundings] = ContextVar(
    "surroundings of a script's tools", default=_OUTSIDE_OF_RUNS
)


def surroundings() -> Surroundings:
    """Return what the running script's tools find around them."""
    return _surroundings.get()


@contextmanager
def downloads_from(network: NetworkSettings) -> Iterator[None]:
    """Apply network settings to downloads in this block, and in tasks started in it."""
    with _set_to(replace(surroundings(), network=network)):
        yield


@contextmanager
def report_downloads(
    refused: Callable[[str], None], doubt: Callable[[str], None]
) -> Iterator[None]:
    """Report what this block or its tasks cannot download."""
    reported = replace(surroundings(), report_refused=refused, report_doubt=doubt)
    with _set_to(reported):
        yield


@contextmanager
def services_answered_by(answer: AnswerRequest) -> Iterator[None]:
    """Answer requests in this block, and in tasks started in it, by this function."""
    with _set_to(replace(surroundings(), answer_service=answer)):
        yield


async def service_answer(request: ServiceRequest, ask: AskService) -> Any:
    """Return the answer to a request; outside of an evaluation the service gives it."""
    answer = surroundings().answer_service
    return await (ask() if answer is None else answer(request, ask))


@contextmanager
def _set_to(surroundings: Surroundings) -> Iterator[None]:
    token = _surroundings.set(surroundings)
    try:
        yield
    finally:
        _surroundings.reset(token)
