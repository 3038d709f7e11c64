"""The settings of the plugin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mind2web2.runs.setting import PluginSettings, Setting, setting
from mind2web2.runs.settings import RunSettings
from mind2web2.utils import values

RAY = "ray"


@dataclass(frozen=True)
class ClusterSettings(PluginSettings):
    """The settings of a run on a cluster."""

    ray_address: str | None = setting(
        None,
        Setting(
            "with --engine ray, which works on all nodes of a Ray cluster (needs the extra 'ray'; "
            "limits of "
            "requests and captures at once then hold on each node): the head of the cluster",
            parse=values.non_empty,
            metavar="HOST:PORT",
            group="machines",
            default_text="RAY_ADDRESS, then a cluster that runs on this machine, then a new one of "
            "this machine alone",
            see="scale.md#a-ray-cluster",
        ),
    )

    def conflicts(self, settings: RunSettings) -> Iterator[str]:
        """Yield what contradicts what."""
        if self.ray_address is not None and settings.engine != RAY:
            yield "--ray_address goes with --engine ray"


def engine_conflicts(settings: RunSettings) -> Iterator[str]:
    """Yield what an evaluation on a cluster cannot have."""
    if settings.is_replay:
        yield "a replay asks no judge, and reads a file of this machine: leave --engine ray out"
    for name in (settings.delivery, "self_debug", "headed", "cdp_url", "shard"):
        if name is not None and settings.value(name):
            yield f"--{name} belongs to one machine: leave it out with --engine ray"
    if not settings.is_shared:
        yield "the nodes of a cluster share judgments: add --judgments postgresql://HOST/DATABASE"
    for name in settings.other_judge_names:
        yield f"the nodes of a cluster ask one judge: leave --{name} out with --engine ray"
