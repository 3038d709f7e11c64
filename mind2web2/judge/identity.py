"""A judge and the source of its judgments, as stores and results name them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


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
