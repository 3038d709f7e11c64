"""An event loop whose clock jumps to the next timer instead of waiting for it."""

import asyncio
import selectors


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self):
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout=None):
        """Return what is ready; where nothing is, the time that would be waited has passed."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everybody waits, and nothing is to happen any more")
        if not ready:
            self.now_s += max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Counts seconds from zero."""

    def __init__(self):
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self):
        """Return the seconds so far, never quite reaching a timer too early by rounding."""
        return self._jumping.now_s


def run_virtually(coroutine):
    """Run a coroutine on such a loop; return its result and the seconds that have passed."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(coroutine)
        return result, runner.get_loop().time()
