"""The two sides of a comparison: for each answer, what its score was made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mind2web2 import CacheFileSys
from mind2web2.plugin import (
    STORE_NAME,
    AnswerFile,
    Mind2Web2Error,
    PathConfig,
    Provenance,
    ResultFile,
    RunSettings,
    UsageError,
    agent_answers,
    answer_file,
    file_sha256,
    judge_spec,
    latest_results,
    prompts_sha256,
    read_answer,
    recorded_settings,
    require_results,
    script_in,
    text_sha256,
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
class Material:
    """The files, settings and judge that one answer's score is made from.

    Args:
        script: the file that judges it, ``None`` where it is gone.
        pages: the folder of its task's pages.
        made_from: as the result has it, or would have it.
        judgments: the file of its judge's replies.
        result: ``None`` for one that is still to be evaluated.
    """

    answer: AnswerFile
    script: Path | None
    pages: Path
    made_from: Provenance
    judgments: Path
    result: ResultFile | None

    @property
    def score(self) -> float | None:
        """Return its score, ``None`` for an answer that is still to be evaluated."""
        return None if self.result is None else self.result.final_score

    @cached_property
    def is_at_hand(self) -> bool:
        """Tell whether answer and pages are still those that were judged; reads files."""
        try:
            text = read_answer(self.answer.path)
        except Mind2Web2Error:
            return False
        cache = CacheFileSys(self.pages)
        return text_sha256(text) == self.made_from.answer_sha256 and all(
            cache.digest(url) == digest for url, digest in self.made_from.pages.items()
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
    require_results(root, folder.name)
    if "/" in name and (root.parent / "answers").is_dir():
        other = PathConfig(root.parent)
        settings = replace(
            settings,
            answer_folder=settings.answer_folder or other.answers_root,
            eval_scripts_root=settings.eval_scripts_root or other.eval_scripts_root,
            cache_root=settings.cache_root or other.cache_root,
        )
    settings = replace(settings, eval_results_root=root)
    scored = {
        (each.task_id, each.answer_name): each
        for each in agent_answers(root, folder.name)
        if each.score is not None and (not task_ids or each.task_id in task_ids)
    }
    # A score with a reason is that of a run in which the agent failed.
    judged: dict[Place, Material | None] = {
        place: None for place, each in scored.items() if each.reason is not None
    }
    for task_id, answer_name, found in latest_results(root, folder.name):
        place = (task_id, answer_name)
        if place in scored and place not in judged:
            judged[place] = _material(settings.paths, folder, place, found.unchanged())
    return Side(name, folder, settings, judged)


def _material(paths: PathConfig, folder: Path, place: Place, result: ResultFile) -> Material:
    task_id, answer_name = place
    made_from = result.provenance
    if made_from is None:
        raise UsageError(
            f"{folder}/{task_id}/{answer_name}: the result does not say what it was made from; "
            "evaluate the answer again"
        )
    source = made_from.replayed_from
    return Material(
        answer=answer_file(paths.answers_root / folder.name / task_id / answer_name),
        script=_script_of(paths.eval_scripts_root, task_id, made_from),
        pages=paths.cache_root / folder.name / task_id,
        made_from=made_from,
        judgments=folder / STORE_NAME if source is None else Path(source.path),
        result=result,
    )


def _script_of(root: Path, task_id: str, made_from: Provenance) -> Path | None:
    """Return the script that a result names, or one of the same bytes in another folder."""
    named = Path(made_from.script).parent.name
    folders = sorted((root, *root.glob("[!.]*/")), key=lambda folder: folder.name != named)
    scripts = (script_in(folder, task_id) for folder in folders)
    return next(
        (path for path in scripts if path and file_sha256(path) == made_from.script_sha256), None
    )


def changed_side(side: Side, changes: Sequence[str]) -> Side:
    """Return the same answers as they would be judged with other settings.

    Raises:
        UsageError: a task has no script there, or the agent no pages.
    """
    settings = with_changes(side.settings, changes)
    pages = settings.paths.cache_root / side.agent
    if "cache_root" in _names(changes) and not pages.is_dir():
        raise UsageError(f"--with cache_root: there is no folder {pages}")
    judged = {
        place: material and _changed(material, place[0], side.agent, changes, settings.paths)
        for place, material in side.judged.items()
    }
    return Side(f"{side.name} with {', '.join(changes)}", side.folder, settings, judged)


def _changed(
    material: Material,
    task_id: str,
    agent: str,
    changes: Sequence[str],
    paths: PathConfig,
) -> Material:
    """Return an answer's material with the files and the judge that changed settings name."""
    names = _names(changes)
    answer, script, pages = material.answer, material.script, material.pages
    made_from = material.made_from
    update: dict[str, object] = {
        "settings_sha256": prompts_sha256(),
    }
    if names.intersection(_JUDGE):
        update["judge"] = judge_spec(with_changes(recorded_settings(made_from), changes)).record()
    if {"eval_version", "eval_scripts_root"} & names:
        script = paths.default_script_for(task_id)
        update["script_sha256"] = file_sha256(script)
    if "cache_root" in names:
        pages = paths.cache_root / agent / task_id
        cache = CacheFileSys(pages)
        update["pages"] = {url: cache.digest(url) for url in made_from.pages}
    if "answer_folder" in names:
        answer = answer_file(paths.answers_root / agent / task_id / material.answer.name)
        update["answer_sha256"] = text_sha256(read_answer(answer.path))
    changed = made_from.model_copy(update=update)
    return Material(answer, script, pages, changed, material.judgments, None)


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
        return [side for side in (self.first, self.second) if side is not None]

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
