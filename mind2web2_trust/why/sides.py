"""The two sides of a comparison: for each answer, what its score was made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from mind2web2.plugin import (
    AgentResults,
    Material,
    RunSettings,
    UsageError,
)
from mind2web2_trust.why.shares import Cause

# Task id and answer name.
Place = tuple[str, str]
_JUDGE = (
    "judge_base_url",
    "judge_extra_body",
    "judge_model",
    "judge_reasoning_effort",
    "judge_temperature",
    "llm_provider",
    "votes",
)
_CHANGEABLE = (
    "eval_version",
    "answer_folder",
    "eval_scripts_root",
    "eval_results_root",
    "cache_root",
    *_JUDGE,
)


@dataclass(frozen=True)
class Side:
    """One side.

    Args:
        name: as the command line has it.
        folder: of its results.
        judged: by answer; ``None`` for an answer that counts 0 without a judge.
    """

    name: str
    folder: Path
    settings: RunSettings
    judged: Mapping[Place, Material | None]

    @property
    def agent(self) -> str:
        """Return the agent's name."""
        return self.folder.name


def named_side(name: str, folder: Path, settings: RunSettings, task_ids: Sequence[str]) -> Side:
    """Return an agent's results with their material, those of the named tasks if any are named.

    The results of another project, as ``other/eval_results/bot``, go with its answers, scripts and
    pages.
    """
    root = folder.parent
    results = AgentResults(root, folder.name)
    results.require()
    if "/" in name and (root.parent / "answers").is_dir():
        project = root.parent
        settings = replace(
            settings,
            answer_folder=settings.answer_folder or project / "answers",
            eval_scripts_root=settings.eval_scripts_root or project / "eval_scripts",
            cache_root=settings.cache_root or project / "cache",
        )
    settings = replace(settings, eval_results_root=root)
    scored = {
        (each.task_id, each.answer_name): each
        for each in results.answers()
        if each.score is not None and (not task_ids or each.task_id in task_ids)
    }
    # A score with a reason is that of a run in which the agent failed.
    judged: dict[Place, Material | None] = {
        place: None for place, each in scored.items() if each.reason is not None
    }
    for task_id, answer_name, result in results.latest():
        place = (task_id, answer_name)
        if place in scored and place not in judged:
            judged[place] = Material.of(settings.paths, folder.name, *place, result.unchanged())
    return Side(name, folder, settings, judged)


def changed_side(side: Side, changes: Sequence[str]) -> Side:
    """Return the same answers as they would be judged with other settings.

    Raises:
        UsageError: a task has no script there, or the agent no pages.
    """
    settings = with_changes(side.settings, changes)
    pages = settings.paths.cache_root / side.agent
    if "cache_root" in _names(changes) and not pages.is_dir():
        raise UsageError(f"--with cache_root: there is no folder {pages}")
    names = _names(changes)
    change = partial(with_changes, changes=changes) if names.intersection(_JUDGE) else None
    judged = {
        place: material and material.changed(names, change, settings.paths)
        for place, material in side.judged.items()
    }
    return Side(f"{side.name} with {', '.join(changes)}", side.folder, settings, judged)


def _names(changes: Iterable[str]) -> set[str]:
    return {change.partition("=")[0] for change in changes}


def with_changes(settings: RunSettings, changes: Iterable[str]) -> RunSettings:
    """Return settings with those of ``--with``. Raises UsageError: one is none of them."""
    for change in changes:
        name, _, text = change.partition("=")
        # A replay asks no judge, so that it does not name another one.
        if name not in _CHANGEABLE or text in ("", "replay"):
            known = ", ".join(_CHANGEABLE)
            raise UsageError(f"--with {change}: name one of {known}, as in --with eval_version=v2")
        try:
            settings = settings.with_text(name, text)
        except ValueError as error:
            raise UsageError(f"--with {change}: {error}") from error
    return settings


@dataclass(frozen=True)
class Pair:
    """An answer on both sides; ``None`` where it counts 0 without a judge."""

    place: Place
    first: Material | None
    second: Material | None

    @property
    def sides(self) -> list[Material]:
        """Return what there is of both."""
        return list(filter(None, (self.first, self.second)))

    @cached_property
    def causes(self) -> Sequence[Cause]:
        """Return what differs between the sides."""
        if self.first is None or self.second is None:
            return [] if self.first is self.second else ["answers"]
        one, other = self.first.made_from, self.second.made_from
        differences: Mapping[Cause, bool] = {
            "answers": one.answer_sha256 != other.answer_sha256,
            "pages": bool(self.changed_pages),
            "rubric": one.script_sha256 != other.script_sha256,
            "judge": not one.is_judged_like(other),
        }
        causes = [cause for cause, differs in differences.items() if differs]
        is_unexplained = self.second.score not in (None, self.first.score)
        return causes or (["other"] if is_unexplained else [])

    @cached_property
    def changed_pages(self) -> Sequence[str]:
        """Return the URLs that both sides looked up and found different."""
        if self.first is None or self.second is None:
            return []
        one, other = self.first.made_from.pages, self.second.made_from.pages
        return [url for url in one if url in other and one[url] != other[url]]


def pairs(first: Side, second: Side) -> Iterator[Pair]:
    """Yield the answers that both sides have."""
    for place, material in first.judged.items():
        if place in second.judged:
            yield Pair(place, material, second.judged[place])
