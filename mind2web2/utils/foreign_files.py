"""Reading files that others may have made: archives bring pipes, devices and files without end."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

# No file of ours but pages comes near it.
MAX_JSON_BYTES = 64 * 1024**2


def read_regular_file(path: Path, max_bytes: int = MAX_JSON_BYTES) -> bytes:
    """Return the content of a regular file, also by way of a link, without ever waiting for a writer.

    Raises:
        OSError: there is none, it is of another kind, cannot be read, or has more than ``max_bytes``.
    """
    # A pipe without a writer would not even let itself be opened, unless it is opened like this.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a path cannot be opened without waiting
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if status.st_size > max_bytes:
            raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", str(path))
        return file.read()


def text_sha256(text: str) -> str:
    """Return the hex digest over UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the hex digest of a regular file's bytes.

    Raises:
        OSError: there is none, or it cannot be read.
    """
    return hashlib.sha256(read_regular_file(path)).hexdigest()
