"""The inputs of a script's result beside its answer, its pages and its judge."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.judge.judgment import ServiceAnswer


class ClockReading(BaseModel):
    """The moment at which a script ran.

    Args:
        moment: ISO 8601 with the local offset; the script's own clock, not the run's.
        zone: name of the local time zone.
        is_read: the script has read the clock; otherwise it may only convert local times.
    """

    model_config = ConfigDict(frozen=True)

    moment: str
    zone: str
    is_read: bool

    @property
    def date(self) -> str:
        """Return the local date."""
        return self.moment[:10]


class ScriptInputs(BaseModel):
    """Inputs of a script beside its answer and pages.

    Other fields of earlier versions are not read.

    Args:
        modules: checksums of the helper files that it imports, by path from its folder.
        services: answers of map and paper services.
        clock: ``None`` where nothing depends on it.
        as_of: the value of ``--as_of``: a moment, or ``answer``.
    """

    model_config = ConfigDict(frozen=True)

    modules: Mapping[str, str | None] = Field(default_factory=dict)
    services: tuple[ServiceAnswer, ...] = ()
    clock: ClockReading | None = None
    as_of: str | None = None
