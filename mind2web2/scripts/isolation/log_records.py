"""Log records of a script's process on their way to its run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from mind2web2.scripts.limits import ScriptStops
from mind2web2.utils.logging_setup import extra_fields, message_of, trace_of

# The longest rubric logs only a part of this.
MAX_LOG_CHARS = 20 * 1024**2


@dataclass(frozen=True)
class SentRecord:
    """A log record as it travels; the run writes when it came.

    Args:
        text: its message, with its arguments.
        trace: the traceback.
        extra: fields that were given with ``extra=``.
    """

    name: str
    level: int
    level_name: str
    text: str
    stack: str | None
    trace: str | None
    extra: dict[str, str]

    @classmethod
    def of(cls, record: logging.LogRecord) -> SentRecord:
        """Return a record as it travels; scripts may make records of their own, with any values."""
        extra = {name: str(value) for name, value in extra_fields(record).items()}
        return cls(
            str(record.name),
            record.levelno,
            str(record.levelname),
            message_of(record),
            record.stack_info,
            trace_of(record),
            extra,
        )

    def record(self) -> logging.LogRecord:
        """Return the record."""
        made = logging.LogRecord(
            self.name, self.level, "", 0, self.text, None, None, sinfo=self.stack
        )
        made.levelname = self.level_name
        made.exc_text = self.trace
        fields = vars(made)
        for name, value in self.extra.items():
            fields.setdefault(name, value)
        return made


class RelayHandler(logging.Handler):
    """Sends log records to the run.

    Args:
        to: whose they are, the answer's or the package's.
        stops: stops a script that logs without end, whatever logger it uses.
    """

    def __init__(
        self, note: Callable[..., None], to: str, stops: ScriptStops | None = None
    ) -> None:
        super().__init__()
        self._note = note
        self._to = to
        self._stops = stops
        self._chars = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, with its traceback as text."""
        try:
            sent = SentRecord.of(record)
            texts = (sent.text, sent.trace or "", sent.stack or "", *sent.extra.values())
            self._chars += sum(map(len, texts))
            self._note("log", to=self._to, record=sent)
        except Exception:  # the text of a value is its own code
            self.handleError(record)
        if self._stops is not None and self._chars > MAX_LOG_CHARS:
            self._stops.stop(f"it logged more than {MAX_LOG_CHARS // 1024**2} MB")
