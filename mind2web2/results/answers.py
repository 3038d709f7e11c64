"""The work of a run: the agent's tasks, their answers, and the script of each task."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mind2web2.errors import AnswerError, UsageError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.result_file import Seconds
from mind2web2.utils.files import folder_names, read_regular_file
from mind2web2.utils.json_text import read_leniently
from mind2web2.utils.names import check_name, name_list, natural_key
from mind2web2.utils.path_config import PathConfig, ScriptFile

log = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 1_000_000
EMPTY_ANSWER = "the agent gave an empty answer"

_ANSWER_NAME = re.compile(r"answer_[1-9][0-9]*\.md", re.ASCII)
_CASE_HEADER = re.compile(r"---[ \t]*\n(?:#.*\n)*expect: *[\d.]+ *\n")

_META_NAME = re.compile(r"answer_[1-9][0-9]*\.meta\.json", re.ASCII)


@dataclass(frozen=True)
class RunFolders:
    """The folders of an agent's pages and results."""

    agent_name: str
    cache_root: Path
    eval_results_root: Path

    def task_cache(self, task_id: str) -> Path:
        """Return the folder of a task's pages."""
        return self.cache_root / self.agent_name / task_id

    @property
    def agent_results(self) -> Path:
        """Return the folder of the agent's results."""
        return self.eval_results_root / self.agent_name


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """One answer of the agent.

    Args:
        time_s: the agent's time, from its meta file.
        created: when it was made, as its meta file says it.
        model: the model that answered, likewise.
    """

    name: str
    path: Path
    time_s: float | None = None
    created: str | None = None
    model: str | None = None
    unknown: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """Return the name without ``.md``, as result folders are called."""
        return self.path.stem


@dataclass(frozen=True, slots=True)
class TaskWork:
    """One task of the agent.

    Args:
        answers: its answers in natural order; a folder or a broken link named like an answer is
            among them, so that it is reported instead of vanishing.
        script_path: the script that judges them, ``None`` if there is none.
        unscored_reason: why no answer of this task can be scored, in one line; ``None`` if they
            can.
        failed_runs: why runs count as 0 without a judge, by answer name.
        elsewhere: names of further answers, which other shards judge.
    """

    task_id: str
    answers: tuple[AnswerFile, ...]
    script_path: Path | None
    script_version: str | None
    unscored_reason: str | None = None
    problems: tuple[str, ...] = ()
    failed_runs: Mapping[str, str] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()

    @property
    def places(self) -> set[tuple[str, str]]:
        """Return task and name of each answer, and of each run that failed."""
        names = {answer.name for answer in self.answers} | self.failed_runs.keys()
        return {(self.task_id, name) for name in names}

    def only(self, places: Collection[tuple[str, str]]) -> TaskWork:
        """Return the work on these answers alone, and these runs that failed."""
        return replace(
            self,
            answers=tuple(one for one in self.answers if (self.task_id, one.name) in places),
            failed_runs={
                name: why
                for name, why in self.failed_runs.items()
                if (self.task_id, name) in places
            },
        )


def chosen_work(work: Sequence[TaskWork], places: Collection[tuple[str, str]]) -> list[TaskWork]:
    """Return the work on these answers alone, given as task and answer name."""
    return [task.only(places) for task in work if not task.places.isdisjoint(places)]


@dataclass(frozen=True)
class AnswerSetting:
    """The answer with the script and the pages of its task."""

    agent_name: str
    task_id: str
    answer: AnswerFile
    script_path: Path
    script_version: str
    task_cache: CacheFileSys


@dataclass(frozen=True)
class AnswerJob(AnswerSetting):
    """One answer to evaluate, whose result is written."""

    folder: Path


def select_work(paths: PathConfig, agent_name: str, task_ids: Sequence[str] = ()) -> list[TaskWork]:
    """Return the agent's tasks in natural order, or only the named ones.

    A task without a script is part of the list, with the reason, as long as any other has one.

    Raises:
        UsageError: a name is not a plain one, or there is no such agent, no answer or no script.
    """
    agent_folder = _agent_folder(paths, agent_name)
    tasks = [_task_work(paths, agent_folder / name) for name in _task_ids(agent_folder, task_ids)]
    if not any(task.places for task in tasks):
        raise _no_answers(agent_folder, task_ids)
    answered = [task for task in tasks if task.answers]
    if answered and all(task.script_path is None for task in answered):
        raise UsageError(f"{answered[0].unscored_reason}")
    return tasks


def agent_names(paths: PathConfig) -> list[str]:
    """Return all agents that have a folder with answers. Raises UsageError: there is none."""
    root = paths.answers_root
    names = [
        name
        for name in _folders(root)
        if any(answer_paths(task) for task in (root / name).glob("*/"))
    ]
    if not names:
        raise UsageError(f"no answers under {root}: expected <agent>/<task_id>/answer_<k>.md")
    return names


def select_answers(
    paths: PathConfig, agent_name: str, task_ids: Sequence[str] = ()
) -> dict[str, tuple[AnswerFile, ...]]:
    """Return the answers to the agent's tasks, or to the named ones, in natural order.

    Raises:
        UsageError: a name is not a plain one, or there is no such agent, task or answer.
    """
    agent_folder = _agent_folder(paths, agent_name)
    selected = {
        name: answer_files(agent_folder / name)[0] for name in _task_ids(agent_folder, task_ids)
    }
    if not any(selected.values()):
        raise _no_answers(agent_folder, task_ids)
    return {name: answers for name, answers in selected.items() if answers}


def _no_answers(agent_folder: Path, task_ids: Sequence[str]) -> UsageError:
    to_tasks = f" to {name_list(task_ids)}" if task_ids else ""
    return UsageError(
        f"no answers{to_tasks} under {agent_folder}: expected <task_id>/answer_<k>.md"
    )


def read_answer(path: Path) -> str:
    r"""Return an answer's text without a byte order mark and with ``\n`` as its only line break.

    Line breaks are made uniform because checkouts and archives change them, while the same answer
    has to give the same judge requests everywhere.

    Raises:
        AnswerError: the file is missing, not a file, a link out of the agent's folder, unreadable,
            over 1,000,000 bytes, not UTF-8, without any text, or a case of a rehearsal.
    """
    try:
        content = read_regular_file(path, MAX_ANSWER_BYTES)
    except OSError as error:
        raise AnswerError(f"answer {path} cannot be read: {error.strerror}") from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AnswerError(
            f"answer {path} is not UTF-8 (byte 0x{content[error.start]:02x} at offset "
            f"{error.start}): "
            "save it as UTF-8"
        ) from error
    if not text.removeprefix("\ufeff").strip():
        raise AnswerError(f"answer {path} is empty: it counts 0 as soon as it is evaluated again")
    text = uniform_text(text)
    if _CASE_HEADER.match(text):
        raise AnswerError(
            f"answer {path} begins with the header of a rehearsal's case, which tells the judge "
            "the score: keep only the text below the second line of ---"
        )
    return text


def is_empty_answer(path: Path) -> bool:
    """Tell whether an answer's file holds no text: the run counts as 0, like one without a file."""
    try:
        content = read_regular_file(path, MAX_ANSWER_BYTES)
    except OSError:
        return False  # ``read_answer`` says why
    return not content.decode("utf-8", "replace").removeprefix("\ufeff").strip()


def failed_runs(answers: Iterable[Path]) -> dict[str, str]:
    """Return why runs of the agent count as 0, by answer name."""
    return {path.name: EMPTY_ANSWER for path in answers if is_empty_answer(path)}


def without_empty(
    answers: Sequence[AnswerFile],
) -> tuple[tuple[AnswerFile, ...], dict[str, str]]:
    """Return the answers that hold text, and why the other ones count as 0, by name."""
    empty = failed_runs(answer.path for answer in answers)
    return tuple(answer for answer in answers if answer.name not in empty), empty


def uniform_text(text: str) -> str:
    r"""Return an answer's text as ``read_answer`` does."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _agent_folder(paths: PathConfig, agent_name: str) -> Path:
    folder = paths.answers_root / check_name("agent", agent_name)
    if folder.is_dir():
        return folder
    if not paths.answers_root.is_dir():
        raise UsageError(
            f"no answers folder {paths.answers_root} in {Path.cwd()}: run the command in your "
            "project's folder, or name another one with --answer_folder"
        )
    known = name_list(_folders(paths.answers_root))
    raise UsageError(f"no agent {agent_name} under {paths.answers_root}. Found: {known}")


def _task_ids(agent_folder: Path, task_ids: Sequence[str]) -> list[str]:
    for task_id in task_ids:
        if not (agent_folder / check_name("task", task_id)).is_dir():
            known = name_list(_folders(agent_folder))
            raise UsageError(f"no answers to task {task_id} under {agent_folder}. Found: {known}")
    return list(dict.fromkeys(task_ids)) or _folders(agent_folder)


def _folders(folder: Path) -> list[str]:
    with UsageError.unable_to(f"list {folder}"):
        return folder_names(folder)


def _task_work(paths: PathConfig, task_folder: Path) -> TaskWork:
    task_id = task_folder.name
    script, unscored_reason = _script(paths, task_id)
    answers, problems = answer_files(task_folder)
    answers, empty = without_empty(answers)
    for problem in problems:
        log.warning("task %s: %s", task_id, problem)
    work = TaskWork(task_id, answers, None, None, unscored_reason, problems, empty)
    if script is None:
        return work
    return replace(work, script_path=script.path, script_version=script.version)


def _script(paths: PathConfig, task_id: str) -> tuple[ScriptFile | None, str | None]:
    try:
        check_name("task", task_id)
    except UsageError as error:
        return None, str(error)  # an oddly named folder costs its own answers only
    script = paths.find_script(task_id)
    return script, None if script else paths.missing_script(task_id)


def answer_files(task_folder: Path) -> tuple[tuple[AnswerFile, ...], tuple[str, ...]]:
    """Return the answers in a task's folder, in natural order, and notes for the user."""
    entries = _entries(task_folder)
    answers = tuple(map(answer_file, _answers_of(entries)))
    problems = []
    if unknown := [
        f"{answer.stem}: {name_list(answer.unknown)}" for answer in answers if answer.unknown
    ]:
        known = " and ".join(AnswerMeta.model_fields)
        problems.append(
            f"ignored unknown keys in .meta.json files: {'; '.join(unknown)}. Known keys: {known}"
        )
    others = [entry.name for entry in entries if not is_expected(entry.name)]
    if others:
        problems.append(
            f"ignored {name_list(others)}: answers are called answer_<k>.md, k = 1, 2, 3"
        )
    if not answers:
        problems.append(f"no answers in {task_folder}: expected answer_<k>.md")
    return answers, tuple(problems)


def answer_paths(task_folder: Path) -> list[Path]:
    """Return the paths of the answers in a task's folder, in natural order; reads no file."""
    return _answers_of(_entries(task_folder))


def _entries(task_folder: Path) -> list[Path]:
    with UsageError.unable_to(f"list {task_folder}"), suppress(FileNotFoundError):
        return sorted(task_folder.iterdir(), key=lambda entry: natural_key(entry.name))
    return []


def _answers_of(entries: Sequence[Path]) -> list[Path]:
    return [entry for entry in entries if _ANSWER_NAME.fullmatch(entry.name)]


def is_expected(name: str) -> bool:
    """Tell whether a file name belongs into a task's folder."""
    return name.startswith(".") or any(kind.fullmatch(name) for kind in (_ANSWER_NAME, _META_NAME))


class AnswerMeta(BaseModel):
    """The known fields of an answer's meta file."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    time_seconds: Seconds | None = None
    created: str | None = None
    model: str | None = None


def answer_file(answer_path: Path) -> AnswerFile:
    """Return an answer with what its meta file says.

    Unusable parts of that file are logged and ignored.
    """
    answer = AnswerFile(answer_path.name, answer_path)
    meta_path = answer_path.with_suffix(".meta.json")
    try:
        fields = json.loads(read_regular_file(meta_path))
        if not isinstance(fields, dict):
            raise ValueError("it is not a JSON object")
    except FileNotFoundError:
        return answer
    except (OSError, ValueError, RecursionError) as error:
        log.warning("ignored %s: %s", meta_path, error)
        return answer
    meta = read_leniently(AnswerMeta, fields)
    if meta.time_seconds is None and "time_seconds" in fields:
        log.warning("ignored %s: time_seconds is not a number of seconds", meta_path)
    unknown = tuple(name for name in fields if name not in AnswerMeta.model_fields)
    return replace(
        answer,
        time_s=meta.time_seconds,
        created=meta.created,
        model=meta.model,
        unknown=unknown,
    )
