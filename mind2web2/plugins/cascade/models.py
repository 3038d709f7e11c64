"""The models of two judges, as ``--judge_cascade`` names them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.llm_client.settings import Servers, check_address, listed_servers, public_address


@dataclass(frozen=True, slots=True)
class JudgeCascade:
    """The models of two judges.

    Args:
        first: the cheap model, asked first.
        strong: the model that decides where votes of the first differ or a gate fails, and that
            extracts.
        server: address of the first model's server, or a file that lists several; ``None`` for the
            server of the strong one.
    """

    first: str
    strong: str
    server: str | None = None

    @classmethod
    def parse(cls, text: str) -> JudgeCascade:
        """Return the two judges of ``CHEAP,STRONG`` or ``CHEAP@SERVER,STRONG``.

        Raises:
            ValueError: the text does not name two models.
        """
        named, _, strong = text.rpartition(",")
        first, at, server = named.partition("@")
        names = first.strip(), strong.strip()
        are_two = all(names) and names[0] != names[1] and "," not in named
        if not are_two or (at and not server.strip()):
            raise ValueError(
                f"{text!r} does not name two models: write CHEAP,STRONG or CHEAP@SERVER,STRONG"
            )
        return cls(*names, server.strip() or None)

    def __str__(self) -> str:
        """Return the text that ``parsed`` reads, without what is secret in the server's address."""
        server = self.server or ""
        if "://" in server:
            server = public_address(server)
        at_server = f"@{server}" if server else ""
        return f"{self.first}{at_server},{self.strong}"

    def first_server(self) -> str | Servers | None:
        """Return the server or servers of the first judge, ``None`` for that of the strong one.

        Raises:
            UsageError: there is no such file, or it lists no servers.
        """
        if self.server is None:
            return None
        if "://" in self.server:
            check_address(self.server, "--judge_cascade")
            return self.server
        if not Path(self.server).is_file():
            raise UsageError(
                f"--judge_cascade: {self.server} is neither an address such as "
                "http://localhost:8000/v1 nor a file that lists servers"
            )
        return listed_servers(Path(self.server), model=self.first)
