"""The hook ``deliveries``: plugins that send the questions of a run in a way of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from mind2web2.errors import UsageError
from mind2web2.judge.delivery import DIRECT, Delivery
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.chat import ChatProvider
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.entry_points import load_part


class Sender(AbstractAsyncContextManager["Sender"], Protocol):
    """Sends the questions of a run, while entered."""

    def clients(self) -> Sequence[ChatProvider]:
        """Return what asks each of the run's judges, in their order."""

    def worked_s(self) -> float:
        """Return the seconds, from any start, with no question waiting to be sent or answered."""

    def news(self, *, is_live: bool) -> Iterator[str]:
        """Yield a line for each step since the last call.

        Fewer where a terminal shows the state.
        """

    def state(self) -> Iterator[str]:
        """Yield what a terminal shows of the questions that are on their way, a line each."""


class SenderPlugin(Protocol):
    """A plugin's way to send questions; the setting with the name of its entry point chooses it."""

    delivery: Delivery

    def sender(
        self,
        settings: RunSettings,
        judges: Sequence[JudgeSpec],
        folder: Path,
        store: JudgmentStore,
    ) -> Sender:
        """Return what sends the questions of a run.

        Args:
            folder: of the agent's results, where the plugin may keep its state.
        """

    async def left_open(
        self, settings: RunSettings, folder: Path, store: JudgmentStore
    ) -> str | None:
        """Return a warning about questions that an earlier run has sent and this one asks again."""


def chosen_plugin(settings: RunSettings) -> SenderPlugin | None:
    """Return the plugin that sends the questions of a run, ``None`` if each is a request.

    Raises:
        UsageError: the plugin cannot be loaded.
    """
    name = settings.delivery
    if name is None or settings.is_replay:
        return None
    plugin: SenderPlugin | None = load_part("deliveries", name)
    if plugin is None:
        raise UsageError(f"--{name} is of a plugin that cannot be loaded")
    return plugin


def delivery_of(settings: RunSettings) -> Delivery:
    """Return how the questions of a run reach its judge."""
    plugin = chosen_plugin(settings)
    return DIRECT if plugin is None else plugin.delivery
