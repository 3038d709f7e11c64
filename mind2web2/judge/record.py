"""How results and stored judgments name the judge."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from mind2web2.rubric.vote_rule import DEFAULT_TRIALS


class JudgeIdentity(BaseModel):
    """A model with its request parameters and its server."""

    model_config = ConfigDict(frozen=True)

    model: str
    endpoint: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None
    extra_body: str | None = None

    def in_words(self) -> list[str]:
        """Return the model, the parameters that are set as ``name=value``, and the server."""
        parameters = self.model_dump(exclude={"model", "endpoint"}, exclude_none=True)
        return [
            self.model,
            *(f"{name}={value}" for name, value in parameters.items()),
            f"at {self.endpoint}",
        ]


class JudgmentSource(BaseModel):
    """The file of judgments that a replay answers from.

    Args:
        path: relative to the working directory where the file lies below it.
        sha256: of an exported file; ``None`` for a store.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    sha256: str | None = None


# The provider that answers from stored judgments, and the name of its server.
REPLAY = "replay"


class JudgeRecord(BaseModel):
    """The judge of a result and its parameters.

    Args:
        votes: the most on a claim.
    """

    model_config = ConfigDict(frozen=True)

    provider: str
    endpoint: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None
    extra_body: str | None = None
    votes: int = DEFAULT_TRIALS

    @property
    def identity(self) -> JudgeIdentity:
        """Return the judge that decided as the store of judgments knows it."""
        return JudgeIdentity(**self.model_dump(include=set(JudgeIdentity.model_fields)))


def server_named(endpoint: str | None) -> str | None:
    """Return a server by its name in records, ``None`` for a replay, which names none."""
    return None if endpoint in ("", REPLAY) else endpoint
