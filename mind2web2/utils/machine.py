"""What this process runs on: its processors and memory, and the kind of its file systems."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_CONTAINER_MEMORY = Path("/sys/fs/cgroup/memory.max")
_NETWORK_KINDS = (
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "orangefs",
    "pvfs2",
    "smb3",
    "smbfs",
)
_NETWORK_FUSE = ("ceph", "gcsfuse", "glusterfs", "lustre", "rclone", "s3fs", "sshfs")


def processors() -> int:
    """Return how many processors this process may run on, at least one."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the machine's memory, or the container's limit where that is smaller."""
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # ``max`` is no number, and not every system has the file.
    with suppress(OSError, ValueError):
        return min(machine_bytes, int(_CONTAINER_MEMORY.read_text()))
    return machine_bytes


def network_file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return the kind of network file system that a path is on, such as ``nfs4``.

    ``None`` elsewhere.

    Args:
        mounts: the kernel's list of mounts (proc(5)); a system without one counts as local.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place, kind, depth = path.resolve(), "", -1
    for fields in (line.split() for line in lines):
        with suppress(IndexError, ValueError):
            # Spaces in a mount point are written as \\040.
            point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))
            # A later mount hides an earlier one at the same point.
            if place.is_relative_to(point) and len(point.parts) >= depth:
                kind, depth = fields[fields.index("-") + 1], len(point.parts)
    fuse = kind.removeprefix("fuse.")
    is_network = kind in _NETWORK_KINDS or (fuse != kind and fuse.startswith(_NETWORK_FUSE))
    return kind if is_network else None
