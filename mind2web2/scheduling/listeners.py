"""What hears a logger: a script that counts log lines sees when verifications end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any


def listeners_of(logger: object) -> dict[int, object] | None:
    """Return the objects that may see a logger's records, by ``id``; ``None`` where they are not known."""
    if logger is None:
        return {}
    if type(logger) not in (logging.Logger, logging.RootLogger):
        return None
    found: list[object] = [logging.getLogRecordFactory()]
    each: logging.Logger | None = logger  # type: ignore[assignment]  # checked above
    while each is not None:
        replaced_methods = filter(callable, vars(each).values())
        found += [*each.handlers, *each.filters, *replaced_methods]
        found += [part for handler in each.handlers for part in handler.filters]
        each = each.parent if each.propagate else None
    return {id(listener): listener for listener in found}


def guard_listeners(guard: Callable[[], None]) -> None:
    """Call ``guard`` before this process changes what hears any logger; cannot be taken back."""
    for kind, name in (
        (logging.Filterer, "addFilter"),
        (logging.Filterer, "removeFilter"),
        (logging.Logger, "addHandler"),
        (logging.Logger, "removeHandler"),
        (logging.Logger, "__setattr__"),
        (logging.Handler, "__setattr__"),
    ):
        setattr(kind, name, _guarded(getattr(kind, name), guard))
    logging.setLogRecordFactory = _guarded(logging.setLogRecordFactory, guard)


def _guarded(
    function: Callable[..., Any], guard: Callable[[], None]
) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        guard()
        return function(*arguments, **keywords)

    return call
