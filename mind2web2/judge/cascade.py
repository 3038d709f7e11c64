"""Two judges by name: a cheap one that is asked first, and a strong one for what is in doubt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mind2web2.errors import UsageError
from mind2web2.llm_client.settings import (
    OPENAI_DECISIONS,
    SYSTEM_ONE,
    PoolSource,
    check_address,
    public_address,
)

# The probability above which a decision model decides as the first of two judges.
DEFAULT_CONFIDENCE = 0.9
# A parameter of requests to decision models that is not sent: a question with it shares no request.
ASKED, ALONE = "asked", "alone"
ASKED_ALONE = '{"asked":"alone"}'
# In front of the name of a decision model: the provider.
_PREFIXES = {"decisions": OPENAI_DECISIONS, "systemone": SYSTEM_ONE}


def decision_model(name: str) -> tuple[str, str] | None:
    """Return provider and model of a name such as ``decisions:gpt-6-luna``, ``None`` for any other model.

    The model is empty where nothing follows the colon.
    """
    prefix, colon, model = name.partition(":")
    provider = _PREFIXES.get(prefix.strip())
    if provider is None or not colon:
        return None
    return provider, model.strip()


def decision_name(provider: str, model: str) -> str:
    """Return the name that ``decision_model`` reads."""
    prefix = next(each for each, of in _PREFIXES.items() if of == provider)
    return f"{prefix}:{model}"


@dataclass(frozen=True, slots=True)
class JudgeCascade:
    """The models of two judges.

    Args:
        first: the cheap model, asked first.
        strong: the model that decides where the first is in doubt, and that extracts.
        server: address of the first model's server, or a file that lists several; ``None`` for the server of
            the strong one.
        decision_provider: of a first model that is a decision model.
    """

    first: str
    strong: str
    server: str | None = None
    decision_provider: str | None = None

    @classmethod
    def parsed(cls, text: str) -> JudgeCascade:
        """Return the two judges of ``CHEAP,STRONG`` or ``CHEAP@SERVER,STRONG``.

        ``decisions:`` or ``systemone:`` in front of the first one says that it is a decision model.

        Raises:
            ValueError: the text names no two models, or a decision model as the strong one.
        """
        named, _, strong = text.rpartition(",")
        first, at, server = named.partition("@")
        names = first.strip(), strong.strip()
        are_two = all(names) and names[0] != names[1] and "," not in named
        if not are_two or (at and not server.strip()):
            raise ValueError(
                f"{text!r} does not name two models: write CHEAP,STRONG or CHEAP@SERVER,STRONG"
            )
        if decision_model(names[1]) is not None:
            raise ValueError(
                f"{names[1]!r} decides without reasons and extracts nothing: name it first, and a model that "
                "writes text as the strong one"
            )
        provider, model = decision_model(names[0]) or (None, names[0])
        if not model:
            raise ValueError(f"{names[0]!r} names no model: write {names[0]}MODEL")
        return cls(model, names[1], server.strip() or None, provider)

    @property
    def first_name(self) -> str:
        """Return the first model as it is written in an option."""
        if self.decision_provider is None:
            return self.first
        return decision_name(self.decision_provider, self.first)

    def __str__(self) -> str:
        """Return the text that ``parsed`` reads, without what is secret in the server's address."""
        server = self.server or ""
        if "://" in server:
            server = public_address(server)
        at_server = f"@{server}" if server else ""
        return f"{self.first_name}{at_server},{self.strong}"

    def first_server(self) -> str | PoolSource | None:
        """Return the server or servers of the first judge, ``None`` for that of the strong one.

        Raises:
            UsageError: there is no such file, or it lists no servers.
        """
        if self.server is None:
            return None
        if self.decision_provider is not None and "://" not in self.server:
            raise UsageError(
                f"--judge_cascade: {self.server} is no address such as http://localhost:8000/v1; a decision "
                "model has one server"
            )
        if "://" in self.server:
            check_address(self.server, "--judge_cascade")
            return self.server
        if not Path(self.server).is_file():
            raise UsageError(
                f"--judge_cascade: {self.server} is neither an address such as http://localhost:8000/v1 nor "
                "a file that lists servers"
            )
        return PoolSource(Path(self.server), model=self.first)
