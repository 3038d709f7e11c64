"""The download of a benchmark from Hugging Face: task lists and eval scripts."""

from __future__ import annotations

import os
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mind2web2.errors import Mind2Web2Error, UsageError
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.names import name_list
from mind2web2.utils.path_config import PathConfig

_HUB = "https://huggingface.co"
_FILES = re.compile(
    r"(?P<list>[A-Za-z0-9_]+\.csv)|evaluation_scripts/(?P<script>[0-9]{4}_[0-9]{2}_[0-9]{2}/\w[\w-]*\.py)",
    re.ASCII,
)
_AT_ONCE = 8
_REFUSED = (401, 403, 404)
_LAYOUT = "<name>.csv and evaluation_scripts/<yyyy_mm_dd>/<task_id>.py"


class DownloadError(Mind2Web2Error):
    """The dataset cannot be downloaded; nothing was replaced, and the same command starts again."""


@dataclass(frozen=True, slots=True)
class Downloaded:
    """The state of the project's files after a download.

    Args:
        written: how many files are new or replaced.
    """

    commit: str
    task_lists: tuple[Path, ...]
    scripts: int
    written: int


def download_benchmark(
    paths: PathConfig,
    tasks_root: Path,
    *,
    dataset: str,
    revision: str,
    overwrite: bool,
) -> Downloaded:
    """Download task lists and eval scripts into their folders.

    ``HF_ENDPOINT`` names a mirror; the token is that of ``HF_TOKEN`` or of the stored login.

    Raises:
        UsageError: access is refused, there is no such dataset, or other files would be replaced.
        DownloadError: the server fails.
    """
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    endpoint = os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or _HUB
    page = f"{endpoint}/datasets/{dataset}"
    hub = HfApi(endpoint=endpoint)
    with tempfile.TemporaryDirectory() as folder:
        try:
            listing = hub.dataset_info(dataset, revision=revision)
            commit = str(listing.sha)
            names = [each.rfilename for each in listing.siblings or ()]
            places = _places(names, paths, tasks_root, f"dataset {dataset} at {revision}")
            download = partial(
                hub.hf_hub_download,
                dataset,
                repo_type="dataset",
                revision=commit,
                local_dir=folder,
            )
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                list(threads.map(download, places))
        except GatedRepoError as error:
            raise UsageError(
                f"{page} is gated (HTTP {error.response.status_code}): accept its conditions "
                f"there, create a token at {endpoint}/settings/tokens that may read gated "
                "repositories, and set HF_TOKEN to it"
            ) from error
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status not in _REFUSED:
                raise _failed(page, error) from error
            raise UsageError(
                f"{page} at {revision} refuses this account, or is not there (HTTP {status}): check "
                "HF_TOKEN or the login of hf, --dataset and --revision"
            ) from error
        except (OSError, HTTPError, HFValidationError) as error:
            raise _failed(page, error) from error
        contents = {path: (Path(folder) / name).read_bytes() for name, path in places.items()}
    written = _write(contents, dataset, overwrite=overwrite)
    lists = tuple(path for path in contents if path.suffix == ".csv")
    return Downloaded(commit, lists, len(contents) - len(lists), written)


def _failed(page: str, error: Exception) -> DownloadError:
    reason = " ".join(str(error).split())[:200]
    return DownloadError(f"cannot download {page}: {reason}. Nothing was replaced: run it again")


def _places(names: list[str], paths: PathConfig, tasks_root: Path, of: str) -> dict[str, Path]:
    """Return where each file of the dataset belongs."""
    places: dict[str, Path] = {}
    for name in sorted(names):
        parts = _FILES.fullmatch(name)
        if parts and parts["list"]:
            places[name] = tasks_root / parts["list"]
        elif parts:
            places[name] = paths.eval_scripts_root / parts["script"]
    if {path.suffix for path in places.values()} != {".csv", ".py"}:
        raise UsageError(f"{of} has other files than {_LAYOUT}")
    return places


def _write(contents: dict[Path, bytes], dataset: str, *, overwrite: bool) -> int:
    """Write the files that are not there yet, and return how many."""
    new = {path: content for path, content in contents.items() if not _holds(path, content)}
    changed = [str(path) for path in new if path.exists()]
    if changed and not overwrite:
        raise UsageError(
            f"{name_list(changed)} differ from {dataset}: move your files away, or give --overwrite"
        )
    for path, content in new.items():
        write_whole(path, content)
    return len(new)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return read_regular_file(path) == content
    except OSError:
        return False
