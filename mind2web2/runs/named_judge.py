"""The judge that the settings name: one to ask, or the one whose stored judgments are replayed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.judge.record import JudgeIdentity
from mind2web2.judge.spec import JudgeSpec, keyed_part, replaying
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.transfer import source_of
from mind2web2.llm_client.settings import public_address
from mind2web2.results.agent_results import AgentResults
from mind2web2.runs.settings import RunSettings


def judge_spec(settings: RunSettings) -> JudgeSpec:
    """Return the judge that the settings name, for a run that is not a replay.

    Raises:
        UsageError: its server cannot be used.
    """
    return JudgeSpec(
        settings.model,
        None if settings.is_replay else settings.judge_base_url,
        settings.llm_provider,
        temperature=settings.judge_temperature,
        reasoning_effort=settings.judge_reasoning_effort,
        max_images=0 if settings.no_screenshots else None,
        extra_body=settings.judge_extra_body,
        votes=settings.votes,
    )


def replayed_judge(
    settings: RunSettings, store: JudgmentStore, path: Path, results: AgentResults
) -> JudgeSpec:
    """Return the judge whose judgments are replayed from a file.

    Args:
        results: of the agent. If no option names a judge, such as after a comparison of judges,
            that of the newest result is replayed.

    Raises:
        UsageError: several of the stored judges fit the settings, or none does.
    """
    known = store.identities()
    asked = {
        "model": settings.judge_model,
        "temperature": settings.judge_temperature,
        "reasoning_effort": settings.judge_reasoning_effort,
        "max_images": 0 if settings.no_screenshots else None,
        "extra_body": keyed_part(json.loads(settings.judge_extra_body or "{}")),
    }
    judge = _only_fitting(asked, _of_server(settings, known), known, results)
    return replaying(judge, settings.votes, source_of(path))


def _only_fitting(
    asked: Mapping[str, object],
    stored: Sequence[JudgeIdentity],
    known: Sequence[JudgeIdentity],
    results: AgentResults,
) -> JudgeIdentity:
    """Return the one stored judge that has the parameters asked for.

    Args:
        known: the judges that a message names if none is left in ``stored``.

    Raises:
        UsageError: several fit, or none does.
    """
    wanted = {name: value for name, value in asked.items() if value is not None}
    fitting = [judge for judge in stored if _has(judge, wanted)]
    if len(fitting) > 1:
        # Options that are not given are then taken as not set, but if none is, a result tells.
        made_from = results.made_from()
        if made_from is not None and not wanted:
            # The result of a replay does not name its server.
            asked = made_from.judge.identity.model_dump(exclude={"endpoint"})
        fitting = [judge for judge in fitting if _has(judge, asked)] or fitting
    if len(fitting) != 1:
        listed = "; ".join(" ".join(judge.in_words()) for judge in stored or known) or "none"
        which = "several fit" if fitting else "none fits"
        raise UsageError(
            f"replay needs one judge, {which}; the store has: {listed}. Choose with --judge_model, "
            "--judge_reasoning_effort, --judge_temperature, "
            "--judge_extra_body, --no_screenshots and --judge_base_url (part of the "
            "server's name)"
        )
    return fitting[0]


def _of_server(settings: RunSettings, known: list[JudgeIdentity]) -> list[JudgeIdentity]:
    server = (settings.judge_base_url or "").rstrip("/")
    if "://" in server:
        # Names of servers lack user, password and query.
        server = public_address(server)
    named = [judge for judge in known if server in judge.endpoint]
    # One server's address may be part of another's: the whole address wins.
    return [judge for judge in named if server and judge.endpoint.endswith(f" {server}")] or named


def _has(judge: JudgeIdentity, parameters: Mapping[str, object]) -> bool:
    return all(getattr(judge, name) == value for name, value in parameters.items())
