"""Which files of a folder come from a dataset, and of which commit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from mind2web2.utils.files import read_regular_file

# In each folder that `mind2web2 get` fills: which files of which commit are there.
DATASET_RECORD = ".dataset.json"


def dataset_record(folder: Path) -> dict[str, Any]:
    """Return which files of a folder come from a dataset; empty where nothing readable says so."""
    try:
        content = json.loads(read_regular_file(folder / DATASET_RECORD))
    except (OSError, ValueError, RecursionError):
        return {}
    is_record = isinstance(content, dict) and all(
        isinstance(content.get(key), dict) for key in ("files", "known")
    )
    return content if is_record else {}


def git_blob_id(content: bytes) -> str:
    """Return the id that git, and so a dataset's listing, gives a file with this content."""
    return hashlib.sha1(
        b"blob %d\0" % len(content) + content, usedforsecurity=False
    ).hexdigest()


def dataset_commit(script: Path) -> str | None:
    """Return the dataset's commit that a script is from; ``None`` for other scripts and changed ones.

    Raises:
        OSError: the script cannot be read.
    """
    record = dataset_record(script.parent)
    listed = record.get("files", {}).get(script.name)
    content = read_regular_file(script) if listed else b""
    is_from_there = listed in (
        git_blob_id(content),
        hashlib.sha256(content).hexdigest(),
    )
    return str(record["commit"]) if is_from_there and "commit" in record else None
