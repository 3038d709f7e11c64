"""Tasks: the download of a benchmark, its task lists, and the question of each task."""

from __future__ import annotations

import ast
import asyncio
import csv
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel, Field

from mind2web2.errors import Mind2Web2Error, UsageError
from mind2web2.llm_client.settings import check_address, check_keys
from mind2web2.results.dataset_record import (
    DATASET_RECORD,
    DatasetRecord,
    dataset_record,
    git_blob_id,
)
from mind2web2.scripts.load import parsed_script, script_problem
from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX
from mind2web2.scripts.rubric_reading import read_rubric
from mind2web2.scripts.yaml_lines import YamlFileError
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.names import check_name, name_list, natural_key
from mind2web2.utils.path_config import SCRIPT_SUFFIXES, PathConfig
from mind2web2.utils.process_lock import ProcessLock
from mind2web2.utils.program import program
from mind2web2.utils.retry import PassingError, Tries, tried
from mind2web2.utils.retry_after import retry_after_s

if TYPE_CHECKING:
    import httpx2

MAX_FIELD_CHARS = 1_000_000
_COLUMNS = ("task_id", "domain", "subdomain", "task_description")


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a benchmark.

    Args:
        listed_in: names of the task lists that name it.
        question: the text that agents get.
        script_problem: why its eval script cannot run, with file and line, as far as its text
            shows.
    """

    task_id: str
    domain: str = ""
    subdomain: str = ""
    listed_in: tuple[str, ...] = ()
    script_version: str | None = None
    question: str | None = None
    script_problem: str | None = None


def read_task_list(path: Path) -> list[Task]:
    """Return the tasks of a list in its order: one id a line, or CSV with a column ``task_id``.

    A folder of scripts is a list of their tasks.

    Raises:
        UsageError: it cannot be read, names no task, names one twice, or has other columns.
    """
    if path.is_dir():
        return [Task(task_id) for task_id in _script_ids([path])]
    try:
        text = read_regular_file(path).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the task list {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the task list {path}: it is not UTF-8 text") from error
    if path.suffix.lower() == ".csv":
        rows = list(_csv_tasks(text, path))
    else:
        lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
        rows = [(number, Task(line)) for number, line in lines if line and not line.startswith("#")]
    if not rows:
        raise UsageError(f"the task list {path} names no task: write one task id a line")
    seen: dict[str, int] = {}
    for number, task in rows:
        try:
            check_name("task", task.task_id)
        except UsageError as error:
            raise UsageError(f"{path}, line {number}: {error}") from error
        if first := seen.get(task.task_id):
            raise UsageError(f"{path}, line {number}: task {task.task_id} is also in line {first}")
        seen[task.task_id] = number
    return [task for _, task in rows]


def _script_ids(folders: Sequence[Path]) -> list[str]:
    """Return the tasks that have a script or a rubric file in the folders, in natural order."""
    found: set[str] = set()
    for folder in folders:
        if folder.is_dir():
            scripts = (path for path in folder.iterdir() if path.suffix in SCRIPT_SUFFIXES)
            found |= {path.stem for path in scripts}
    return sorted(found, key=natural_key)


def _csv_tasks(text: str, path: Path) -> Iterator[tuple[int, Task]]:
    for number, row in csv_rows(text.splitlines(keepends=True), path, ["task_id"]):
        fields = {name: (row.get(name) or "").strip() for name in _COLUMNS}
        yield (
            number,
            Task(
                fields["task_id"],
                fields["domain"],
                fields["subdomain"],
                (),
                None,
                fields["task_description"] or None,
            ),
        )


def csv_rows(
    lines: Iterable[str], path: Path, required: Sequence[str]
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield the rows of a CSV file by column, with the number of the line in which each ends.

    Raises:
        UsageError: a column is missing, or a row is not CSV or has more fields than columns.
    """
    csv.field_size_limit(MAX_FIELD_CHARS)
    reader = csv.DictReader(lines, strict=True)
    try:
        columns = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = columns
        if missing := [name for name in required if name not in columns]:
            raise UsageError(
                f"{path}, line 1: no column {' and '.join(missing)}: "
                f"the columns are {', '.join(columns) or 'none'}"
            )
        for row in reader:
            if None in row:
                raise UsageError(f"{path}, line {reader.line_num}: more fields than columns")
            yield reader.line_num, row
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.reader.line_num}: {error}") from error


def find_tasks(paths: PathConfig, tasks_root: Path, task_list: Path | None = None) -> list[Task]:
    """Return the tasks of the lists under ``tasks_root`` and of the eval scripts, or of one list.

    Raises:
        UsageError: there is no task, or a list cannot be read.
    """
    lists = sorted(tasks_root.glob("*.csv")) if task_list is None else [task_list]
    found: dict[str, Task] = {}
    for path in lists:
        for task in read_task_list(path):
            known = found.get(task.task_id, task)
            found[task.task_id] = replace(
                known,
                listed_in=(*known.listed_in, path.stem),
                question=known.question or task.question,
            )
    versions = paths.script_versions() if paths.eval_scripts_root.is_dir() else []
    if task_list is None:
        folders = [paths.eval_scripts_root / version for version in versions]
        for task_id in _script_ids(folders or [paths.eval_scripts_root]):
            found.setdefault(task_id, Task(task_id))
    if not found:
        raise UsageError(
            f"no tasks under {tasks_root} and {paths.eval_scripts_root}: download them by "
            f"{program()} get"
        )
    has_scripts = paths.eval_scripts_root.is_dir()
    return [_with_script(task, paths) if has_scripts else task for task in found.values()]


def questions_of(tasks: Iterable[Task]) -> dict[str, str]:
    """Return the question of each task.

    One whose eval script is broken may have none and is left out.

    Raises:
        UsageError: another task has none, or all scripts are broken.
    """
    tasks = list(tasks)
    asked = [task for task in tasks if task.question or not task.script_problem]
    if not asked:
        raise UsageError("; ".join(task.script_problem or "" for task in tasks))
    questions = {task.task_id: task.question or "" for task in asked}
    if unknown := [task_id for task_id, question in questions.items() if not question.strip()]:
        raise UsageError(
            f"no question for {name_list(unknown)}: give a task list with a column "
            "task_description, or "
            "an eval script with TASK_DESCRIPTION"
        )
    return questions


def select_tasks(tasks: Sequence[Task], task_ids: Sequence[str]) -> list[Task]:
    """Return the named tasks, or all if none is named. Raises UsageError: a task is unknown."""
    for name in task_ids:
        check_name("task", name)
    known = {task.task_id for task in tasks}
    if unknown := [name for name in task_ids if name not in known]:
        raise UsageError(f"unknown task {name_list(unknown)}. Found: {name_list(known)}")
    return [task for task in tasks if not task_ids or task.task_id in task_ids]


def _with_script(task: Task, paths: PathConfig) -> Task:
    script = paths.find_script(task.task_id)
    if script is None:
        return task
    return replace(
        task,
        script_version=script.version,
        question=task.question or _description(script.path),
        script_problem=script_problem(script.path),
    )


def _description(script: Path) -> str | None:
    """Return a script's ``TASK_DESCRIPTION`` without running it, or the question of a rubric file.

    ``None`` where it cannot be read.
    """
    try:
        if script.suffix == RUBRIC_SUFFIX:
            return read_rubric(script).rubric.question.strip()
        tree = parsed_script(read_regular_file(script), script)
    except (OSError, ValueError, SyntaxError, RecursionError, YamlFileError):
        return None  # ``script_problem`` says so
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(
            isinstance(target, ast.Name) and target.id == "TASK_DESCRIPTION" for target in targets
        ):
            value = statement.value  # type: ignore[attr-defined]  # an assignment, as it has targets
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value.strip()
    return None


DATASET = "osunlp/Mind2Web-2"
_HUB = "https://huggingface.co"
_FILES = re.compile(
    r"(?P<list>[A-Za-z0-9_]+\.csv)|evaluation_scripts/(?P<script>[0-9]{4}_[0-9]{2}_[0-9]{2}/\w[\w-]*\.py)",
    re.ASCII,
)
_SCRIPT_LAYOUT = "evaluation_scripts/<yyyy_mm_dd>/<task_id>.py"
_AT_ONCE = 8
_TRIES = Tries(5, first_wait_s=2.0)
_MAX_FILE_BYTES = 64 * 1024**2


class DownloadError(Mind2Web2Error):
    """The dataset cannot be downloaded; what is complete stays, and the same command continues."""


@dataclass(frozen=True, slots=True)
class Hub:
    """The server of datasets and the user's token for it."""

    endpoint: str
    token: str | None

    @classmethod
    def from_environment(cls) -> Hub:
        """Return the hub of ``HF_ENDPOINT``, with ``HF_TOKEN`` or the token of the stored login.

        Raises:
            UsageError: the endpoint is not an address, or the token has characters that no token
                has.
        """
        endpoint = os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or _HUB
        check_address(endpoint, "HF_ENDPOINT")
        token = os.environ.get("HF_TOKEN", "").strip() or _stored_token()
        if token:
            check_keys({"the Hugging Face token": token})
        return cls(endpoint, token or None)


def _stored_token() -> str:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = os.environ.get("HF_HOME") or Path(caches) / "huggingface"
    path = Path(os.environ.get("HF_TOKEN_PATH") or Path(home) / "token")
    try:
        return read_regular_file(path.expanduser()).decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


@dataclass(frozen=True, slots=True)
class _RemoteFile:
    """A file of the dataset; ``digest`` is its git blob id, or for large files their SHA-256."""

    remote_path: str
    path: Path
    digest: str

    def is_content(self, content: bytes) -> bool:
        return self.digest in (
            git_blob_id(content),
            hashlib.sha256(content).hexdigest(),
        )

    def is_complete(self) -> bool:
        try:
            return self.is_content(read_regular_file(self.path))
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Downloaded:
    """The state of the project's files after a download."""

    commit: str
    task_lists: tuple[Path, ...]
    scripts: int
    fetched: int


async def download_benchmark(
    hub: Hub,
    paths: PathConfig,
    tasks_root: Path,
    *,
    dataset: str = DATASET,
    revision: str = "main",
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Downloaded:
    """Download task lists and eval scripts; files that are complete are not fetched again.

    Args:
        on_progress: is called with the number of complete files and of all.

    Raises:
        UsageError: access is refused, there is no such dataset, or changed files would be lost.
        DownloadError: the server fails, or sends other content than it lists.
    """
    import httpx2

    headers = {"Authorization": f"Bearer {hub.token}"} if hub.token else {}
    timeout = httpx2.Timeout(60.0, connect=30.0)
    async with httpx2.AsyncClient(
        headers=headers, timeout=timeout, follow_redirects=True
    ) as client:
        session = _Session(hub, dataset, client)
        commit, files = await session.listing(revision, paths, tasks_root)
        lock = ProcessLock(tasks_root / ".get.lock")
        with lock.hold(f"another mind2web2 get writes to {tasks_root}: wait until it ends"):
            missing = [file for file in files if not file.is_complete()]
            if not overwrite:
                _refuse_changed(missing, dataset)
            _record(files, dataset, commit, is_complete=False)
            progress = len(files) - len(missing)
            on_progress(progress, len(files))
            places = asyncio.Semaphore(_AT_ONCE)

            async def fetch(file: _RemoteFile) -> None:
                nonlocal progress
                async with places:
                    content = await session.content(commit, file)
                await asyncio.to_thread(write_whole, file.path, content)
                progress += 1
                on_progress(progress, len(files))

            await all_or_first_error(fetch(file) for file in missing)
            _record(files, dataset, commit, is_complete=True)
    lists = tuple(file.path for file in files if file.path.suffix == ".csv")
    return Downloaded(commit, lists, len(files) - len(lists), len(missing))


def _refuse_changed(missing: list[_RemoteFile], dataset: str) -> None:
    changed = []
    for file in missing:
        with suppress(FileNotFoundError):
            content = read_regular_file(file.path)
            known = dataset_record(file.path.parent).known.get(file.path.name, [])
            if (
                git_blob_id(content) not in known
                and hashlib.sha256(content).hexdigest() not in known
            ):
                changed.append(str(file.path))
    if changed:
        raise UsageError(
            f"{name_list(changed)} differ from {dataset}: move your files away, or give --overwrite"
        )


def _record(files: list[_RemoteFile], dataset: str, commit: str, *, is_complete: bool) -> None:
    """Write into each folder which files of it come from the dataset.

    Before the download it names the contents that a file may have by then, earlier ones included,
    so that a killed download leaves nothing that looks like the user's own change.
    """
    for folder in dict.fromkeys(file.path.parent for file in files):
        digests = {file.path.name: file.digest for file in files if file.path.parent == folder}
        before = dataset_record(folder)
        known = {} if is_complete else before.known
        now = DatasetRecord(
            dataset=dataset,
            commit=commit,
            complete=is_complete,
            known={
                name: [*dict.fromkeys([*known.get(name, ()), digest])]
                for name, digest in digests.items()
            },
            files=digests,
        )
        if now != before:
            content = json.dumps(now.model_dump(), indent=1)
            write_whole(folder / DATASET_RECORD, content + "\n")


class _LargeFile(BaseModel):
    sha256: str


class _ListedFile(BaseModel):
    """A file in a dataset's listing."""

    rfilename: str
    blob_id: str | None = Field(default=None, alias="blobId")
    lfs: _LargeFile | None = None

    @property
    def digest(self) -> str:
        """Return the SHA-256 of a large file, the id of the git blob of another one."""
        if self.lfs is not None:
            return self.lfs.sha256
        if self.blob_id is None:
            raise ValueError(f"no digest of {self.rfilename}")
        return self.blob_id


class _Listing(BaseModel):
    """A revision of a dataset, as Hugging Face describes it."""

    sha: str
    siblings: list[_ListedFile]


@dataclass(frozen=True, slots=True)
class _Session:
    hub: Hub
    dataset: str
    client: httpx2.AsyncClient

    async def listing(
        self, revision: str, paths: PathConfig, tasks_root: Path
    ) -> tuple[str, list[_RemoteFile]]:
        """Return commit and files of a revision."""
        url = f"{self.hub.endpoint}/api/datasets/{self.dataset}/revision/{quote(revision, safe='')}"
        try:
            listing = _Listing.model_validate_json(await self._get(f"{url}?blobs=true"))
            commit = listing.sha
            names = {entry.rfilename: entry.digest for entry in listing.siblings}
            if not re.fullmatch(r"[0-9a-f]{40}", commit):
                raise ValueError(f"commit {commit!r}")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DownloadError(f"{url} did not answer with a list of files: {error}") from error
        files = []
        for name, digest in sorted(names.items()):
            if found := _FILES.fullmatch(name):
                local = (
                    tasks_root / found["list"]
                    if found["list"]
                    else paths.eval_scripts_root / found["script"]
                )
                files.append(_RemoteFile(name, local, digest))
        for suffix, expected in (
            (".csv", "task list <name>.csv"),
            (".py", f"eval script {_SCRIPT_LAYOUT}"),
        ):
            if not any(file.path.suffix == suffix for file in files):
                raise UsageError(f"dataset {self.dataset} at {revision} has no {expected}")
        return commit, files

    async def content(self, commit: str, file: _RemoteFile) -> bytes:
        """Return a file's content after comparing it with its digest."""
        url = f"{self.hub.endpoint}/datasets/{self.dataset}/resolve/{commit}/{quote(file.remote_path)}"
        content = await self._get(url)
        if not file.is_content(content):
            raise DownloadError(
                f"{url} sent other content than the dataset lists: run the command again"
            )
        return content

    async def _get(self, url: str) -> bytes:
        try:
            return await tried(partial(self._get_once, url), _TRIES)
        except PassingError as failure:
            raise DownloadError(
                f"cannot download {url}: {failure} ({_TRIES.most} attempts); the same command "
                "continues"
            ) from failure

    async def _get_once(self, url: str) -> bytes:
        import httpx2

        try:
            async with self.client.stream("GET", url) as response:
                status = response.status_code
                if status < 400:
                    return await _body(response, url)
                if status != 429 and status < 500:
                    raise self._refusal(url, status)
                raise PassingError(f"HTTP {status}", retry_after_s(response.headers) or 0.0)
        except httpx2.InvalidURL as error:
            raise DownloadError(f"cannot download {url}: {error}") from error
        except httpx2.TransportError as error:
            raise PassingError(str(error) or type(error).__name__) from error
        except httpx2.HTTPError as error:
            raise DownloadError(f"cannot download {url}: {error}") from error

    def _refusal(self, url: str, status: int) -> Mind2Web2Error:
        page, tokens = (
            f"{self.hub.endpoint}/datasets/{self.dataset}",
            f"{self.hub.endpoint}/settings/tokens",
        )
        if status == 401 and self.hub.token:
            return UsageError(
                f"{page} refuses the token (HTTP 401): check HF_TOKEN, or the login of hf; your "
                f"tokens: {tokens}"
            )
        if status == 401:
            return UsageError(
                f"{page} needs a login (HTTP 401): create a token at {tokens}, set HF_TOKEN to it, "
                "and "
                f"accept the conditions at {page}"
            )
        if status == 403:
            return UsageError(
                f"this Hugging Face account has no access (HTTP 403): open {page} and accept the "
                "conditions; "
                f"a fine-grained token also needs the right to read gated repositories, at {tokens}"
            )
        if status == 404:
            return UsageError(f"there is no {url} (HTTP 404): check --dataset and --revision")
        return DownloadError(f"cannot download {url}: HTTP {status}")


async def _body(response: httpx2.Response, url: str) -> bytes:
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > _MAX_FILE_BYTES:
            raise DownloadError(f"{url} has more than {_MAX_FILE_BYTES:,} bytes")
    return bytes(content)
