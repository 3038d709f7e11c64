"""Which files, settings and judge a result was made from."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from pydantic import BaseModel, ConfigDict, Field

from mind2web2 import __version__
from mind2web2.judge.record import (
    REPLAY,
    JudgeRecord,
    JudgmentSource,
)
from mind2web2.rubric.verdicts import ServiceAnswer
from mind2web2.utils.moments import ClockReading

# The name under which versions list this package.
OWN_PACKAGE = "mind2web2"
# Libraries that send requests to judges, or render and scale the pages that judges see.
_SHAPING_LIBRARIES = ("aiohttp", "patchright", "pillow", "pydantic", "pypdfium2")


@cache
def library_versions() -> Mapping[str, str]:
    """Return the versions of this package, Python, and libraries that shape requests."""
    versions = {OWN_PACKAGE: __version__, "python": platform.python_version()}
    for name in _SHAPING_LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


class Served(BaseModel):
    """The model behind some judgments, as the judge's server reported it.

    Args:
        model: the model's own name, such as one with a date.
        system_fingerprint: the backend's version.
    """

    model_config = ConfigDict(frozen=True)

    model: str | None = None
    system_fingerprint: str | None = None
    judgments: int


class ScriptInputs(BaseModel):
    """Inputs of a script beside its answer and pages.

    Args:
        services: answers of map and paper services.
        clock: ``None`` where the script has not read it.
        as_of: the value of ``--as_of``: a moment, or ``answer``.
    """

    model_config = ConfigDict(frozen=True)

    services: tuple[ServiceAnswer, ...] = ()
    clock: ClockReading | None = None
    as_of: str | None = None


class Provenance(BaseModel):
    """The inputs of a result. Other fields of earlier versions are not read.

    Args:
        answer_sha256: of the answer's text.
        script: version folder and file name of the eval script.
        script_sha256: of the script's bytes.
        settings_sha256: of our texts that judges see.
        digest: over all that the result was made from.
        pages: digest of every page that the script looked up; ``None`` where none was stored.
        listing_sha256: of the list of stored pages, if the script read that list.
        with_captures: pages that were not stored would have been captured.
        with_private_network: captures and downloads from private addresses were allowed.
        refused_pages: pages that were not captured because their addresses are private.
        refused_downloads: files that the script did not get for the same reason.
        versions: of this package, of Python and of the libraries that shape requests.
        served: the models behind the judgments.
        inputs: what the script read beside answer and pages.
        replayed_from: the file with the judgments of a replay; ``None`` in results of earlier
            versions.
    """

    model_config = ConfigDict(frozen=True)

    answer_sha256: str
    script: str
    script_sha256: str
    settings_sha256: str
    digest: str = ""
    judge: JudgeRecord
    pages: Mapping[str, str | None]
    listing_sha256: str | None = None
    with_captures: bool = False
    with_private_network: bool = False
    refused_pages: tuple[str, ...] = ()
    refused_downloads: tuple[str, ...] = ()
    versions: Mapping[str, str] = Field(default_factory=dict)
    served: tuple[Served, ...] = ()
    inputs: ScriptInputs = ScriptInputs()
    replayed_from: JudgmentSource | None = None

    def is_judged_like(self, other: Provenance) -> bool:
        """Tell whether the same judge is asked in the same words; a replay names no server."""
        return self._asked_beside(other) == other._asked_beside(self)

    def _asked_beside(self, other: Provenance) -> tuple[JudgeRecord, str]:
        judge = self.judge
        if REPLAY in (judge.provider, other.judge.provider):
            judge = judge.model_copy(update={"provider": REPLAY, "endpoint": REPLAY})
        return judge, self.settings_sha256


def served_by(served: Iterable[tuple[str | None, str | None]]) -> tuple[Served, ...]:
    """Return the models behind judgments, the most frequent first."""
    ordered = sorted(Counter(served).items(), key=lambda item: (-item[1], str(item[0])))
    return tuple(
        Served(model=model, system_fingerprint=fingerprint, judgments=count)
        for (model, fingerprint), count in ordered
    )
