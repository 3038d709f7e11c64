"""Machines of their own in a network of this machine, which can vanish from it.

The module needs root and iproute2.

with Machines() as machines:
    one = machines.add()
    subprocess.Popen([*one.command, "python", ...])
    one.vanish()
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Machine:
    """A network namespace, joined to a bridge by a cable."""

    name: str
    cable: str
    address: str

    @property
    def command(self) -> Sequence[str]:
        """Return the words that run a command on the machine."""
        return ("ip", "netns", "exec", self.name)

    def vanish(self) -> None:
        """Pull the cable: no connection is closed, and no packet comes through any more."""
        _ip("link", "set", self.cable, "nomaster")

    def kill_processes(self) -> None:
        """Kill all processes that run on the machine."""
        self._signal(signal.SIGKILL)

    def stand_still(self) -> None:
        """Stop all processes that run on the machine.

        Its system goes on to answer for their connections.
        """
        self._signal(signal.SIGSTOP)

    def _signal(self, number: int) -> None:
        for pid in _ip("netns", "pids", self.name).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), number)


class Machines:
    """A bridge at ``address``, and the machines on it."""

    def __init__(self) -> None:
        # Names of links have 15 characters; several tests may run at once.
        self._id = f"{os.getpid() % 65536:04x}"
        self._bridge = f"m2w2b{self._id}"
        self._subnet = f"10.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
        self.address = f"{self._subnet}.1"
        self._machines: list[Machine] = []

    def __enter__(self) -> Self:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        return self

    def __exit__(self, *_error: object) -> None:
        for machine in self._machines:
            machine.kill_processes()
            _ip("netns", "delete", machine.name)
        _ip("link", "delete", self._bridge)

    def add(self) -> Machine:
        """Return one more machine."""
        number = len(self._machines) + 2
        machine = Machine(
            f"m2w2-{self._id}-{number}",
            f"m2w2{self._id}{number}",
            f"{self._subnet}.{number}",
        )
        _ip("netns", "add", machine.name)
        self._machines.append(machine)
        _ip(
            "link",
            "add",
            machine.cable,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            machine.name,
        )
        _ip("link", "set", machine.cable, "master", self._bridge, "up")
        for words in (
            ("address", "add", f"{machine.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
            ("route", "add", "default", "via", self.address),
        ):
            _ip("-n", machine.name, *words)
        return machine


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"
    return done.stdout
