# ruff: noqa: RUF009 (the call in the class returns a field)
"""The settings of the plugin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mind2web2.plugins.cascade.models import JudgeCascade
from mind2web2.runs.setting import InFile, PluginSettings, Setting, setting
from mind2web2.utils.entry_points import load_part

if TYPE_CHECKING:
    from mind2web2.judge.judgment import JudgeIdentity
    from mind2web2.judge.spec import JudgeSpec
    from mind2web2.runs.settings import RunSettings


@dataclass(frozen=True)
class CascadeSettings(PluginSettings):
    """The settings of a run with two judges."""

    judge_cascade: JudgeCascade | None = setting(
        None,
        Setting(
            "use two judges instead of --judge_model. The cheap model votes first; the strong "
            "model decides where those votes differ or a critical leaf would fail, and does all "
            "extraction. Write CHEAP@SERVER if the cheap model has its own server, an address or "
            "a file as for --judge_pool. Results name both models",
            parse=JudgeCascade.parse,
            metavar="CHEAP,STRONG",
            group="judge",
            in_file=InFile('"gpt-5-nano,gpt-5"', (str,), JudgeCascade.parse),
            is_secret=True,
            names_judge=True,
            see="cost-and-speed.md#two-judges",
        ),
    )

    @property
    def judge_model(self) -> str | None:
        """Return the strong model."""
        return None if self.judge_cascade is None else self.judge_cascade.strong

    def judge(self, judge: JudgeSpec) -> JudgeSpec:
        """Return the strong judge with the cheap one before it."""
        if self.judge_cascade is None:
            return judge
        composed: JudgeSpec = _composition().preceded(judge, self.judge_cascade)
        return composed

    def replayed_judge(self, judge: JudgeSpec, stored: Sequence[JudgeIdentity]) -> JudgeSpec:
        """Return the strong judge of a replay with the stored cheap one before it."""
        if self.judge_cascade is None:
            return judge
        composed: JudgeSpec = _composition().preceded_by_stored(judge, self.judge_cascade, stored)
        return composed

    def conflicts(self, settings: RunSettings) -> Iterator[str]:
        """Yield what contradicts what."""
        cascade = self.judge_cascade
        if cascade is None:
            return
        if settings.judge_model not in (None, cascade.strong):
            yield "--judge_cascade names both judges: leave --judge_model out"
        if cascade.server is None and settings.names_a_pool and not settings.is_replay:
            yield (
                "the servers of a pool serve one model: write the first judge with its own, as in "
                f"--judge_cascade {cascade.first}@http://localhost:8000/v1,{cascade.strong}"
            )
        if cascade.server is not None and settings.delivery is not None:
            yield (
                f"--{settings.delivery} asks one provider: write the first judge without a server"
            )


def _composition() -> Any:
    """Return the rest of the plugin, which loads much; the help needs the settings alone."""
    return load_part("compositions", "first_model")
