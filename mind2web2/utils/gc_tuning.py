"""Keeps the garbage collector from stopping a run for as long as it takes to look at everything loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Collections of the middle generation; Python's own default is 10. With 5 there are some 35,000 objects to
# look at, or 12 ms; with 100 it is 60 ms, but fewer finished trees are kept, of 80 KB each.
_FULL_AFTER = 5
_FULL = 2


@contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage while libraries load: they leave next to none, and load in a seventh less time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def loaded_for_good() -> Iterator[None]:
    """Take what a full collection has left for needed until the ``with`` block ends.

    The modules of a run are some hundred thousand objects, and its results are more and more of them. Each
    full collection would look at all of them and hold the event loop for 0.2 s meanwhile, time and again. So
    it looks at what has come since the one before: some milliseconds. What is needed no longer is freed all
    the same, unless it refers to itself and was in use at the very moment of a full collection.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds[:2], _FULL_AFTER)
    gc.callbacks.append(_keep_survivors)
    try:
        yield
    finally:
        gc.callbacks.remove(_keep_survivors)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _keep_survivors(phase: str, about: dict[str, int]) -> None:
    if phase == "stop" and about["generation"] == _FULL:
        gc.freeze()
