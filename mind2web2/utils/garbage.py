"""Keeps the garbage collector from stopping a run for as long as it takes to look at everything loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Collections of the middle generation; Python's own default is 10.
_FULL_AFTER = 100


@contextmanager
def loaded_for_good() -> Iterator[None]:
    """Take what is loaded by now for needed until the ``with`` block ends.

    The modules of a run are some hundred thousand objects. Each full collection looks at all of them and holds
    the event loop for 0.2 s meanwhile, time and again; without them it takes 0.03 s, and comes less often.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds[:2], _FULL_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
