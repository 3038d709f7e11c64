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


def test_what_refers_to_itself_is_freed():
    """Where it was made since the last full collection."""
    with loaded_for_good():
        short, long = Knot(), Knot()
        seen_short, seen_long = weakref.ref(short), weakref.ref(long)
        del short
        gc.collect()
        assert seen_short() is None
        del long
        gc.collect()
        assert seen_long() is not None


def test_the_collector_is_left_as_it_was():
    """Thresholds and callbacks; objects that are frozen stay frozen."""
    before = (gc.get_threshold(), list(gc.callbacks))
    with loaded_for_good():
        assert gc.get_threshold() != before[0]
    assert (gc.get_threshold(), list(gc.callbacks)) == before
    assert gc.get_freeze_count()


def test_nothing_is_collected_while_libraries_load():
    """Also where it is nested, or was off before."""
    with loading():
        with loading():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
