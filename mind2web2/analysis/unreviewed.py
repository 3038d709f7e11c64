"""Tasks whose rubric file a model has drafted and no person has reviewed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import name_list

_UNREVIEWED = re.compile(rb"^drafted: *[\"']?unreviewed\b", re.MULTILINE)


def unreviewed_warnings(scripts_root: Path, scripts: Iterable[str | None]) -> list[str]:
    """Return a line that names the unreviewed tasks, if there are any.

    Args:
        scripts: version folder and file name of the scripts of some results.
    """
    files = sorted({name for name in scripts if name is not None and name.endswith(".yaml")})
    tasks = {Path(name).stem for name in files if _is_unreviewed(scripts_root / name)}
    if not tasks:
        return []
    return [
        f"drafted by a model and reviewed by no person: {name_list(tasks)}; their scores may be "
        "wrong (read the rubric file, then write `drafted: reviewed` into it)"
    ]


def _is_unreviewed(path: Path) -> bool:
    try:
        return _UNREVIEWED.search(read_regular_file(path)) is not None
    except OSError:
        # Results of files that are gone say so elsewhere.
        return False
