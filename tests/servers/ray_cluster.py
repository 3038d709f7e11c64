"""A Ray cluster of several nodes on this machine.

with RayCluster(3) as cluster:
    call(main, "evaluate", AGENT, "--engine", "ray", ...) with RAY_ADDRESS=cluster.address
    cluster.kill_a_node()
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from servers.machines import Machine

# Ray reads these when it is imported.
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # A node whose agents come too late ends by itself after 15 s, and is started again.
    "RAY_raylet_start_wait_time_s": "45",
    "RAY_agent_register_timeout_ms": "120000",
    # Else other tests come first.
    "RAY_worker_niceness": "0",
}

_PORTS = (
    "metrics_agent_port",
    "metrics_export_port",
    "dashboard_agent_listen_port",
    "runtime_env_agent_port",
)

_OBJECT_STORE_BYTES = 80 * 1024**2
_MAX_TRIES = 4
_JOIN_TIMEOUT_S = 120.0
_LEAVE_TIMEOUT_S = 180.0
_LOOK_EVERY_S = 0.5
Value = TypeVar("Value")


class RayCluster:
    """Nodes with a raylet each, so that each is killed by itself; one of them, the head, stays.

    Args:
        host: the address of these nodes, where machines of their own may join.
    """

    def __init__(self, nodes: int, host: str | None = None) -> None:
        self._count = nodes
        self._host = host
        self._cluster: Any = None

    def __enter__(self) -> Self:
        # At the top, every process that collects the tests would load it.
        from ray.cluster_utils import Cluster

        self._cluster = _started(lambda: Cluster(initialize_head=True, head_node_args=self._node()))
        for _ in range(self._count - 1):
            self.add_a_node()
        return self

    def entrypoints(self) -> set[str]:
        """Return the command lines of the cluster's jobs, as the cluster keeps them."""
        from ray._raylet import GcsClient

        jobs = GcsClient(self.address).get_all_job_info().values()
        return {job.entrypoint for job in jobs}

    def __exit__(self, *_error: object) -> None:
        self._cluster.shutdown()

    @property
    def address(self) -> str:
        """Return host and port of the head."""
        return str(self._cluster.address)

    def add_a_node(self) -> None:
        """Start one more node."""
        _started(lambda: self._cluster.add_node(**self._node()))

    def kill_a_node(self) -> None:
        """Kill all processes of the node that started first, but for the head."""
        self._cluster.remove_node(next(iter(self._cluster.worker_nodes)), allow_graceful=False)

    def join(self, machine: Machine) -> None:
        """Start one more node, on a machine of its own."""
        ray = Path(sys.executable).parent / "ray"
        words = (
            f"--address={self.address}",
            f"--node-ip-address={machine.address}",
            "--num-cpus=0",
            f"--object-store-memory={_OBJECT_STORE_BYTES}",
        )
        for _ in range(_MAX_TRIES):
            command = [*machine.command, ray, "start", *words]
            own = {"XDG_CACHE_HOME": f"{tempfile.gettempdir()}/{machine.name}"}
            subprocess.run(command, check=False, capture_output=True, env=os.environ | own)
            if self._becomes(machine, is_alive=True, timeout_s=_JOIN_TIMEOUT_S):
                return
        raise AssertionError(f"no node starts on {machine.name}")

    def leave(self, machine: Machine) -> None:
        """Kill the node of a machine, and wait until the others know."""
        machine.kill_processes()
        is_known = self._becomes(machine, is_alive=False, timeout_s=_LEAVE_TIMEOUT_S)
        assert is_known, f"Ray still counts the node on {machine.name}"

    def _becomes(self, machine: Machine, *, is_alive: bool, timeout_s: float) -> bool:
        until_s = time.monotonic() + timeout_s
        while time.monotonic() < until_s:
            nodes = self._cluster.global_state.node_table()
            alive = {node["NodeManagerAddress"] for node in nodes if node["Alive"]}
            if (machine.address in alive) == is_alive:
                return True
            time.sleep(_LOOK_EVERY_S)
        return False

    def _node(self) -> dict[str, Any]:
        where = {} if self._host is None else {"node_ip_address": self._host}
        return _node() | where

    def worker_pids(self, name: str) -> list[int]:
        """Return the processes on all nodes that run a task or an actor of this name."""
        raylets = {
            started.process.pid
            for node in self._cluster.list_all_nodes()
            for started in node.all_processes["raylet"]
        }
        parents = {
            int(path.parent.name): _parent(path) for path in Path("/proc").glob("[0-9]*/stat")
        }
        named = [pid for pid in parents if name in _command(pid)]
        return [pid for pid in named if raylets & set(_ancestors(pid, parents))]


def _ancestors(pid: int | None, parents: Mapping[int, int | None]) -> Iterator[int]:
    while pid := parents.get(pid or 0):
        yield pid


def _parent(stat: Path) -> int | None:
    """Return a process's parent, ``None`` if it has ended."""
    with suppress(OSError):
        return int(stat.read_text().rpartition(")")[2].split()[1])
    return None


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def _started(start: Callable[[], Value]) -> Value:
    """Start a node: Ray gives its processes 15 s, too few where many other tests run."""
    for _ in range(_MAX_TRIES - 1):
        # Ray has no error of its own for it.
        with suppress(Exception):
            return start()
    return start()


def _node() -> dict[str, Any]:
    """Return a node without workers of its own, with ports.

    To find ports itself, it would wait for its agents.
    """
    with ExitStack() as probes:
        ports = {}
        for name in _PORTS:
            probe = probes.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            ports[name] = probe.getsockname()[1]
    return {
        "num_cpus": 0,
        "object_store_memory": _OBJECT_STORE_BYTES,
        # Ray's own monitors cost as much processor time as the work of a test.
        "include_dashboard": False,
        "include_log_monitor": False,
        "no_monitor": True,
        **ports,
    }
