"""Which judge a replay replays: the one of the stored judgments that the settings describe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.judge.cascade import JudgeCascade
from mind2web2.judge.judgment import JudgeIdentity
from mind2web2.judge.spec import JudgeSpec, keyed_part
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.transfer import source_of
from mind2web2.llm_client.settings import public_address
from mind2web2.runs.settings import REPLAY, RunSettings


def replayed_judge(settings: RunSettings, store: JudgmentStore, path: Path) -> JudgeSpec:
    """Return the judge whose judgments are replayed from a file.

    Raises:
        UsageError: several of the stored judges fit the settings, or none does.
    """
    known = store.identities()
    asked = {
        "model": settings.named_model,
        "temperature": settings.judge_temperature,
        "reasoning_effort": settings.judge_reasoning_effort,
        "max_images": settings.max_images,
        "extra_body": keyed_part(json.loads(settings.judge_extra_body or "{}")),
    }
    judge = _only_fitting(asked, _of_server(settings, known), known)
    cascade = settings.judge_cascade
    first = None
    if cascade is not None:
        first = _first_of_two(cascade, judge, known)
    return JudgeSpec(
        judge.model,
        provider=REPLAY,
        temperature=judge.temperature,
        reasoning_effort=judge.reasoning_effort,
        max_images=judge.max_images,
        extra_body=judge.extra_body,
        votes=settings.votes,
        first=first,
        replayed_endpoint=judge.endpoint,
        replayed_from=source_of(path),
    )


def _first_of_two(
    cascade: JudgeCascade, strong: JudgeIdentity, known: list[JudgeIdentity]
) -> JudgeSpec:
    asked = {"model": cascade.first, "max_images": strong.max_images}
    servers = known
    if cascade.server is not None and "://" in cascade.server:
        servers = [each for each in servers if cascade.server in each.endpoint]
    first = _only_fitting(asked, servers, known)
    return JudgeSpec(
        first.model,
        provider=REPLAY,
        replayed_endpoint=first.endpoint,
        max_images=first.max_images,
    )


def _only_fitting(
    asked: Mapping[str, object],
    stored: list[JudgeIdentity],
    known: list[JudgeIdentity],
) -> JudgeIdentity:
    wanted = {name: value for name, value in asked.items() if value is not None}
    fitting = [judge for judge in stored if _has(judge, wanted)]
    if len(fitting) > 1 and wanted:
        # Options that are not given are then taken as not set.
        fitting = [judge for judge in fitting if _has(judge, asked)] or fitting
    if len(fitting) != 1:
        listed = "; ".join(" ".join(judge.in_words()) for judge in stored or known) or "none"
        which = "several fit" if fitting else "none fits"
        raise UsageError(
            f"replay needs one judge, {which}; the store has: {listed}. Choose with --judge_model "
            "(or --judge_cascade CHEAP,STRONG), --judge_reasoning_effort, --judge_temperature, "
            "--judge_extra_body, --max_images, --no_screenshots and --judge_base_url (part of the server's "
            "name)"
        )
    return fitting[0]


def _of_server(settings: RunSettings, known: list[JudgeIdentity]) -> list[JudgeIdentity]:
    server = settings.judge_base_url[0].rstrip("/") if settings.judge_base_url else ""
    if "://" in server:
        # Names of servers lack user, password and query.
        server = public_address(server)
    named = [judge for judge in known if server in judge.endpoint]
    # One server's address may be part of another's: the whole address wins.
    return [judge for judge in named if server and judge.endpoint.endswith(f" {server}")] or named


def _has(judge: JudgeIdentity, parameters: Mapping[str, object]) -> bool:
    return all(getattr(judge, name) == value for name, value in parameters.items())
