"""Which files of a folder come from a dataset, and of which commit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mind2web2.utils.files import read_regular_file

# In each folder that `mind2web2 get` fills: which files of which commit are there.
DATASET_RECORD = ".dataset.json"


class DatasetRecord(BaseModel):
    """Which files of a folder come from a dataset.

    Args:
        known: digests that a file of the dataset may have, by name; earlier ones while a download
            lasts.
        files: digests of the files of the commit, by name.
    """

    model_config = ConfigDict(frozen=True)

    dataset: str | None = None
    commit: str | None = None
    complete: bool = False
    known: dict[str, list[str]]
    files: dict[str, str]


_NOTHING = DatasetRecord(known={}, files={})


def dataset_record(folder: Path) -> DatasetRecord:
    """Return which files of a folder come from a dataset; none where nothing readable says so."""
    try:
        content = json.loads(read_regular_file(folder / DATASET_RECORD))
        return DatasetRecord.model_validate(content)
    except (OSError, ValueError, RecursionError):
        return _NOTHING


def git_blob_id(content: bytes) -> str:
    """Return the id that git, and so a dataset's listing, gives a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
