"""No pauses for garbage collection, while libraries load and in a long run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Collections of the middle generation; Python's own default is 10. With 5 there are some 35,000
# objects to look at, or 12 ms; with 100 it is 60 ms, but fewer finished trees are kept, of 80 KB
# each.
_FULL_AFTER = 5
_FULL = 2


@contextmanager
def pause_gc() -> Iterator[None]:
    """Pause garbage collection while libraries load, which saves a seventh of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Exclude the survivors of each full collection in the ``with`` block from later ones.

    The modules of a run are some hundred thousand objects, and its results are more and more of
    them. Each full collection would scan all of them and block the event loop for 0.2 s. So each
    scans only the objects made since the last one: some milliseconds. Reference counting still
    frees objects; only cycles that were in use during a full collection stay, also afterwards.
    """
    thresholds = gc.get_threshold()
    # Without a collection first: it takes 50 ms, and what was loaded leaves ten objects of garbage.
    gc.freeze()
    gc.set_threshold(*thresholds[:2], _FULL_AFTER)
    gc.callbacks.append(_keep_survivors)
    try:
        yield
    finally:
        gc.callbacks.remove(_keep_survivors)
        gc.set_threshold(*thresholds)


def _keep_survivors(phase: str, about: dict[str, int]) -> None:
    if phase == "stop" and about["generation"] == _FULL:
        gc.freeze()
