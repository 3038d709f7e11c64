"""Which eval scripts have changed since they ran, or since a user has accepted them.

Scripts are programs of others, and run with the rights of whoever evaluates. What is known of them is kept in
``eval_results/script_hashes.json``, not beside them: whoever hands scripts on must not hand on trust as well.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mind2web2.provenance import file_sha256
from mind2web2.results import write_file, writing_in
from mind2web2.utils.foreign_files import read_regular_file
from mind2web2.utils.path_config import ScriptFile

FILE_NAME = "script_hashes.json"

State = Literal["new", "same", "changed", "unreadable"]

log = logging.getLogger(__name__)


class Seen(BaseModel):
    """A script at a moment: ``at`` is UTC, ISO 8601."""

    model_config = ConfigDict(frozen=True)

    sha256: str
    at: str


class KnownScript(BaseModel):
    """What is known of a script: how it last ran, and how it was accepted."""

    model_config = ConfigDict(frozen=True)

    last_run: Seen | None = None
    accepted: Seen | None = None


_Known = TypeAdapter(dict[str, KnownScript])


@dataclass(frozen=True, slots=True)
class ScriptTrust:
    """A script as it is now, beside what is known of it.

    Args:
        name: version folder and file name.
        sha256: ``None`` where the script cannot be read, as a broken link or a pipe.
    """

    name: str
    sha256: str | None
    known: KnownScript

    @property
    def reference(self) -> Seen | None:
        """Return what the script is compared with: as accepted, else as it last ran."""
        return self.known.accepted or self.known.last_run

    @property
    def state(self) -> State:
        """Return whether the script is as it was."""
        if self.sha256 is None:
            return "unreadable"
        if self.reference is None:
            return "new"
        return "same" if self.reference.sha256 == self.sha256 else "changed"

    def in_words(self) -> str:
        """Return what is known of the script, in a few words."""
        if self.sha256 is None:
            return "cannot be read"
        if self.reference is None:
            return "new, neither run nor accepted yet"
        what = "accepted" if self.known.accepted else "last run"
        when = self.reference.at[:10]
        if self.state == "same":
            return f"unchanged since {what} {when}"
        return f"changed since {what} {when}, when it was {self.reference.sha256[:12]}..."


def scripts_trusted(eval_results_root: Path, scripts: Iterable[ScriptFile]) -> list[ScriptTrust]:
    """Return what is known of scripts; reads them."""
    known = _known(eval_results_root / FILE_NAME)
    return [_trust(script, known) for script in scripts]


def note_run(eval_results_root: Path, scripts: Sequence[ScriptFile]) -> list[ScriptTrust]:
    """Note that scripts run as they are now, and return those that have changed.

    One that cannot be read is left out: it will not run either.

    Raises:
        ResultWriteError: the folder of all results cannot be written.
    """
    before = _noted(eval_results_root, scripts, "last_run")
    return [each for each in before if each.state == "changed"]


def accept(eval_results_root: Path, scripts: Sequence[ScriptFile]) -> list[ScriptTrust]:
    """Note that a user has accepted scripts as they are now, and return what was known of them before.

    One that cannot be read is not accepted.

    Raises:
        ResultWriteError: the folder of all results cannot be written.
    """
    return _noted(eval_results_root, scripts, "accepted")


def _noted(
    eval_results_root: Path, scripts: Sequence[ScriptFile], what: Literal["last_run", "accepted"]
) -> list[ScriptTrust]:
    path = eval_results_root / FILE_NAME
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with writing_in(eval_results_root):
        known = _known(path)
        before = [_trust(script, known) for script in scripts]
        for each in before:
            if each.sha256 is not None:
                seen = Seen(sha256=each.sha256, at=now)
                known[each.name] = each.known.model_copy(update={what: seen})
        content = _Known.dump_python(dict(sorted(known.items())), mode="json", exclude_none=True)
        write_file(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
    return before


def _trust(script: ScriptFile, known: Mapping[str, KnownScript]) -> ScriptTrust:
    name = f"{script.version}/{script.path.name}"
    sha256: str | None = None
    try:
        sha256 = file_sha256(script.path)
    except OSError as error:
        log.info("script cannot be read path=%s reason=%s", script.path, error.strerror)
    return ScriptTrust(name, sha256, known.get(name, KnownScript()))


def _known(path: Path) -> dict[str, KnownScript]:
    try:
        return _Known.validate_json(read_regular_file(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else "damaged"
        log.warning(
            "%s cannot be read (%s): all scripts count as new, and which of them were accepted, or have "
            "changed since, is lost; look at them, then run: mind2web2 trust --accept",
            path,
            why,
        )
        return {}
