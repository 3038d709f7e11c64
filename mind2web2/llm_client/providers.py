"""Providers of judges that plugins bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mind2web2.llm_client.transport import Transport
from mind2web2.utils.entry_points import load_part


@dataclass(frozen=True)
class Provider:
    """A provider of judges: the hook ``judges``, by the name in ``--llm_provider``.

    Args:
        connect: takes base URL and key, ``None`` for those of the environment; raises
            ``UsageError`` if a key, an address or a package is missing.
        endpoint: takes the base URL, and returns name and address of the server, as records have
            them: ``None`` if the address is not set.
    """

    connect: Callable[[str | None, str | None], Transport]
    endpoint: Callable[[str | None], str | None]


def provider_of_plugin(name: str) -> Provider | None:
    """Return the provider that a plugin brings under a name."""
    plugin: Provider | None = load_part("judges", name)
    return plugin
