"""Every error of this package, named by the boundary that was crossed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Mind2Web2Error(Exception):
    """Anything this package raises on purpose; its text is one line that a user can act on."""

    @classmethod
    @contextmanager
    def unable_to(cls, step: str) -> Iterator[None]:
        """Raise an ``OSError`` while entered as this error: ``cannot``, the step and the reason."""
        try:
            yield
        except OSError as error:
            raise cls(f"cannot {step}: {error.strerror or error}") from error

    @classmethod
    @contextmanager
    def naming_extra(cls, what: str, extra: str) -> Iterator[None]:
        """Raise this error, which names the extra to install, if an import fails while entered."""
        try:
            yield
        except ImportError as error:
            raise cls(
                f"{what} needs the package {error.name}: run `pip install 'mind2web2[{extra}]'`, "
                f"or in a clone `uv sync --extra {extra}`"
            ) from error


class UsageError(Mind2Web2Error):
    """A command or setting cannot be carried out as given: no such agent, no scripts, no key."""


class JudgeUnusableError(UsageError):
    """No request of a run can succeed: the judge cannot be reached, or rejects key or model."""


class AnswerError(Mind2Web2Error):
    """An answer file cannot be judged: empty, not UTF-8, too large, not a file."""


class EvalScriptError(Mind2Web2Error):
    """An eval script raised, never returned, or returned something that is not a result."""


class CacheMiss(Mind2Web2Error, KeyError):  # noqa: N818 (the field's term)
    """A page is not stored in the cache (eval-scripts.md: a ``KeyError`` that names the URL)."""

    def __str__(self) -> str:
        """Return the message itself; ``KeyError`` would show its ``repr``."""
        return str(self.args[0]) if self.args else ""


class CacheReadError(Mind2Web2Error):
    """A stored page or index cannot be read, which does not mean that it is missing."""


class CacheWriteError(Mind2Web2Error):
    """A cache folder cannot be written."""


class PageMissingError(Mind2Web2Error):
    """A page is not stored, and nothing says whether it exists; no claim may fail for that."""


class CaptureError(Mind2Web2Error):
    """A page could not be fetched; the text says why."""


class DoubtfulPageError(CaptureError):
    """A page is unavailable, perhaps because of this machine."""


class PageBugError(Mind2Web2Error):
    """An unforeseen error while one page is prepared, of a parser for instance.

    It costs one leaf.
    """


class BrowserGoneError(CaptureError):
    """The browser ended under a page that was open in it.

    The page may be fine and is worth another try.
    """


class DocumentError(Mind2Web2Error):
    """A PDF or an image cannot be read: damaged, encrypted, too large, not what it claims to be."""


class WorkerError(DocumentError):
    """A worker died or took too long over a document.

    The machine may be at fault as well as the document.
    """


class MachineError(Mind2Web2Error):
    """This machine failed (files, memory, processes), which says nothing about a claim."""


class ResultWriteError(Mind2Web2Error):
    """A result, log or judgment cannot be written."""


class ToolError(Mind2Web2Error):
    """A service behind ``api_tools`` (maps, arXiv) refused or failed."""


class JudgeError(Mind2Web2Error):
    """A judge failed for good. Never a verdict: the answer it was asked for gets no result."""


class JudgeRequestError(JudgeError):
    """The judge refused the request itself: wrong key, unknown model, invalid parameters."""


class JudgeAccessError(JudgeRequestError):
    """The judge rejects this key, model or address, for all requests if ``is_for_all``."""

    def __init__(self, text: str, *, is_for_all: bool = False) -> None:
        super().__init__(text)
        self.is_for_all = is_for_all


class JudgeUnavailableError(JudgeError):
    """Rate limits, server errors, timeouts or dropped connections outlasted the retries.

    Args:
        is_outage: the server failed for all requests for as long as a run waits.
    """

    def __init__(self, text: str, *, is_outage: bool = False) -> None:
        super().__init__(text)
        self.is_outage = is_outage


class JudgeOutputError(JudgeError):
    """The judge's output did not have the right form, even after a repair and a retry."""


class JudgmentMissingError(JudgeError):
    """A replay was asked for a judgment that is not stored."""


class BudgetReachedError(JudgeError):
    """The run has spent ``--max_cost``; nothing more is asked in this run."""


class ContextTooLongError(JudgeError):
    """The request is longer than the judge's context; a shorter one may pass."""


class JudgeDeclinedError(JudgeError):
    """The judge declines the content (refusal, content filter).

    Raised only to direct callers of a client.
    """


class JudgmentStoreError(JudgeError):
    """The store of judgments cannot be read or written.

    A reply that is not kept decides nothing.
    """
