"""What is loaded is no work for the garbage collector, and what refers to itself is freed all the same."""

import gc
import weakref

import pytest

from mind2web2.utils.gc_tuning import loaded_for_good, loading


@pytest.fixture(autouse=True)
def _nothing_is_frozen():
    """Undo for a while what all tests have frozen."""
    gc.unfreeze()
    yield
    gc.freeze()


class Knot:
    """Refers to itself."""

    def __init__(self):
        self.itself = self


def test_what_is_loaded_is_not_looked_at():
    """Nor is what a full collection has left."""
    knots = [Knot()]
    with loaded_for_good():
        assert not any(found is knots[0] for found in gc.get_objects())
        knots.append(Knot())
        assert any(found is knots[1] for found in gc.get_objects())
        gc.collect()
        assert not any(found is knots[1] for found in gc.get_objects())
    assert all(any(found is knot for found in gc.get_objects()) for knot in knots)


def test_what_refers_to_itself_is_freed():
    """While it lasts where it has come since the last full collection, and afterwards in any case."""
    with loaded_for_good():
        short, long = Knot(), Knot()
        seen_short, seen_long = weakref.ref(short), weakref.ref(long)
        del short
        gc.collect()
        assert seen_short() is None
        del long
        gc.collect()
        assert seen_long() is not None
    gc.collect()
    assert seen_long() is None


def test_the_collector_is_left_as_it_was():
    """Thresholds, callbacks and what is frozen."""
    before = (gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count())
    with loaded_for_good():
        assert gc.get_freeze_count() > before[2]
    assert (gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()) == before


def test_what_the_caller_has_frozen_stays_frozen():
    """Else each run after the first would scan all of it again."""
    gc.freeze()
    frozen = gc.get_freeze_count()
    with loaded_for_good():
        pass
    assert gc.get_freeze_count() >= frozen


def test_nothing_is_collected_while_libraries_load():
    """Also where it is nested, or was off before."""
    with loading():
        with loading():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
