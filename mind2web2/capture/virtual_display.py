"""A screen for a browser with a window, on a machine that has none."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys

from mind2web2.errors import MachineError

START_TIMEOUT_S = 15.0
STOP_TIMEOUT_S = 5.0


def needs_virtual_display() -> bool:
    """Tell whether a window would have nowhere to open."""
    return sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


class VirtualDisplay:
    """An X server without a screen; ends by itself when the browser in it ends, whatever happens to us."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process

    @classmethod
    async def start(cls, width_px: int, height_px: int) -> VirtualDisplay:
        """Start one on a free display number.

        Raises:
            MachineError: Xvfb is not installed, or does not start.
        """
        program = shutil.which("Xvfb")
        if program is None:
            raise MachineError(
                "--headed needs a screen, and there is none: run `apt-get install xvfb` or leave it out"
            )
        reading_end, writing_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *("-displayfd", str(writing_end), "-screen", "0", f"{width_px}x{height_px}x24"),
                *("-nolisten", "tcp", "-terminate"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(writing_end,),
            )
        except BaseException:
            os.close(reading_end)
            raise
        finally:
            os.close(writing_end)
        display = cls("", process)
        try:
            display.name = f":{await _display_number(reading_end)}"
        except BaseException:
            await display.stop()
            raise
        return display

    async def stop(self) -> None:
        """End it, by force if it takes long."""
        if self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def _display_number(reading_end: int) -> int:
    """Read the number that the server writes once it is up."""
    reader = asyncio.StreamReader()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading_end, "rb", 0)
    )
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            line = await reader.readline()
    except TimeoutError as error:
        raise MachineError(f"Xvfb did not start within {START_TIMEOUT_S:g} s") from error
    finally:
        pipe.close()
    if not line.strip().isdigit():
        raise MachineError("Xvfb did not start; leave out --headed to do without a screen")
    return int(line)
