"""The settings of the plugin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mind2web2.runs.setting import PluginSettings, Setting, flag, setting
from mind2web2.runs.settings import RunSettings
from mind2web2.utils import values

PROVIDERS = ("openai", "azure_openai")
_COSTS = "costs"


@dataclass(frozen=True)
class BatchSettings(PluginSettings):
    """The settings of a run whose questions go out in batch jobs."""

    batch: bool = flag(
        "ask through the provider's batch endpoints (openai, azure_openai) at half the price. "
        "Each round of questions may take up to a day; if you stop the command, the same command "
        "continues. Scripts run ahead as with --ahead gates, and all answers are judged at once. "
        "--answer_timeout does not count the time spent waiting for batches, and "
        "--max_llm_requests does not apply",
        group=_COSTS,
        is_common=True,
    )
    batch_poll: float | None = setting(
        None,
        Setting(
            "with --batch, seconds until a batch is first checked; later checks are up to 60 "
            "seconds apart",
            parse=values.positive_seconds,
            metavar="S",
            group=_COSTS,
            default_text="5",
        ),
    )

    def conflicts(self, settings: RunSettings) -> Iterator[str]:
        """Yield each contradiction between settings."""
        if not self.batch:
            if self.batch_poll is not None:
                yield "--batch_poll goes with --batch"
            return
        if settings.is_shared:
            yield "--batch keeps its own record of requests: leave --judgments out"
        if settings.names_a_pool:
            yield "--batch asks the batch endpoints of one provider: leave the judge pool out"
        if settings.llm_provider not in PROVIDERS:
            yield (
                f"--batch goes with --llm_provider {' or '.join(PROVIDERS)}, "
                f"not {settings.llm_provider}: evaluate without --batch"
            )
        if "max_llm_requests" in settings.given:
            yield "--max_llm_requests does not limit a batch: leave it out with --batch"
