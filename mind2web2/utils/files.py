"""Files replaced whole, so that a reader sees the old or the new one.

Regular files read, and digests.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mind2web2.errors import UsageError
from mind2web2.utils.names import natural_key

_LEFTOVER_PREFIX = ".writing-"
_DEVICES = Path("/dev")
# No write takes nearly so long.
_CERTAINLY_DEAD_S = 600.0


def write_whole(path: Path, data: bytes | str) -> None:
    """Replace a file by ``data`` (text as UTF-8) at once, making its folder where needed."""
    with replaced_file(path) as file:
        file.write(_as_bytes(data))


def _as_bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes its place when all is written, making its folder where needed."""
    check_replaceable(path)
    staged = _unused_name(path)
    try:
        with _naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with staged.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            staged.replace(path)
    finally:
        _remove_if_possible(staged)


def check_replaceable(path: Path) -> None:
    """Refuse to replace a device or pipe, such as /dev/null, by a file.

    Raises:
        OSError: it is one.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # not there, or writing says why not
    is_file_or_folder = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    if not is_file_or_folder or path.absolute().parent == _DEVICES:
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def _remove_if_possible(staged: Path) -> None:
    # The error is reported already, and a leftover does no harm.
    with suppress(OSError):
        staged.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors of the system name this file, and not the one that it is written to first."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_new(path: Path, data: bytes | str) -> None:
    """Write a file that is not there yet, at once, making its folder where needed.

    Raises:
        FileExistsError: it is there; another process may just have been faster.
    """
    staged = stage_file(path.parent, data)
    try:
        try:
            path.hardlink_to(staged)
        except FileExistsError:
            raise
        except OSError:
            # Not every file system has links. Then an empty file takes the name first.
            path.touch(exist_ok=False)
            _replace_or_remove(staged, path)
    finally:
        staged.unlink(missing_ok=True)


def stage_file(folder: Path, data: bytes | str) -> Path:
    """Write ``data`` under a name that counts as an unfinished write; return its path."""
    path = _unused_name(folder / "any")
    _write_to_disk(path, data)
    return path


def is_leftover(name: str) -> bool:
    """Tell whether a file name is that of an unfinished write."""
    return name.startswith(_LEFTOVER_PREFIX)


def remove_leftovers(folder: Path, min_age_s: float = _CERTAINLY_DEAD_S) -> None:
    """Remove the unfinished writes of killed processes from a folder, as far as possible.

    Args:
        min_age_s: younger files may still be written; 0 for a folder that no other process writes
            to now.
    """
    newest_s = time.time() - min_age_s
    try:
        left = [entry for entry in os.scandir(folder) if is_leftover(entry.name)]
        for entry in left:
            if min_age_s <= 0 or entry.stat().st_mtime < newest_s:
                Path(entry.path).unlink(missing_ok=True)
    except OSError:
        # Leftovers do no harm, and the next write to this folder reports why it fails.
        return


def _replace_or_remove(staged: Path, path: Path) -> None:
    try:
        staged.replace(path)
    except OSError:
        path.unlink()
        raise


def _unused_name(path: Path) -> Path:
    # The name is short, so that a target with a long name does not get one that is too long.
    return path.parent / f"{_LEFTOVER_PREFIX}{secrets.token_hex(8)}"


def _write_to_disk(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(_as_bytes(data))
        file.flush()
        os.fsync(file.fileno())


# Only pages come near this size.
MAX_JSON_BYTES = 64 * 1024**2


def read_regular_file(path: Path, max_bytes: int = MAX_JSON_BYTES) -> bytes:
    """Return the content of a regular file.

    A link is not followed, since folders are exchanged, and one in them must not bring a file of
    this machine to a judge or into a report. Links of whole folders are the user's own.

    Raises:
        OSError: there is none, it is a link or of another kind, cannot be read, or has more than
            ``max_bytes``.
    """
    # A pipe without a writer would not even let itself be opened, unless it is opened like this.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        reason = "it is a link: put a copy of the file there"
        raise OSError(errno.ELOOP, reason, str(path)) from error
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a path cannot be opened without waiting
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if status.st_size > max_bytes:
            raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", str(path))
        return file.read()


def read_text_file(path: Path, shown: str, max_bytes: int = MAX_JSON_BYTES) -> str:
    """Return the text of a regular file that a user has named, without a byte order mark.

    A link is the user's own, and followed.

    Args:
        shown: the file's name in the error.

    Raises:
        UsageError: it cannot be read, or is not UTF-8.
    """
    with UsageError.unable_to(f"read {shown}"):
        content = read_regular_file(Path(os.path.realpath(path)), max_bytes)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {shown}: it is not UTF-8 text") from error


def folder_names(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, in natural order, without hidden ones.

    None if there is no such folder.

    Raises:
        OSError: it cannot be listed.
    """
    if not folder.is_dir():
        return []
    names = [
        entry.name
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.name.startswith(".")
    ]
    return sorted(names, key=natural_key)


def first_link(path: Path, folder: Path) -> Path | None:
    """Return the first symbolic link from a folder to a path in it."""
    at = folder
    for part in path.relative_to(folder).parts:
        at = at / part
        if at.is_symlink():
            return at
    return None


def links_in(folder: Path) -> list[Path]:
    """Return the symbolic links in a folder and the folders in it, sorted; none is followed."""
    links = []
    for at, folders, files in os.walk(folder):
        links += [path for name in (*folders, *files) if (path := Path(at) / name).is_symlink()]
    return sorted(links)


def text_sha256(text: str) -> str:
    """Return the hex digest over UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the hex digest of a regular file's bytes.

    Raises:
        OSError: there is none, or it cannot be read.
    """
    return hashlib.sha256(read_regular_file(path)).hexdigest()
