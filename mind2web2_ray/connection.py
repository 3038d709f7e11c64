"""A Ray cluster on which answers are judged and pages are captured."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

from mind2web2 import __version__
from mind2web2.plugin import UsageError

log = logging.getLogger(__name__)

_OBJECT_STORE_BYTES = 200 * 1024**2
_CONNECT_TIMEOUT_S = 10.0


@asynccontextmanager
async def connect_ray() -> AsyncIterator[Any]:
    """Connect to the Ray cluster of ``RAY_ADDRESS``, or to the one that Ray finds or starts.

    Yield the module.

    Raises:
        UsageError: Ray is missing, or the address does not answer.
    """
    ray = await asyncio.to_thread(_import_ray)
    try:
        await asyncio.to_thread(_connect, ray)
        yield ray
    finally:
        await asyncio.to_thread(ray.shutdown)


def _import_ray() -> Any:
    # No statistics to Ray's makers, and no copy of this process's environment on the nodes.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    with UsageError.naming_extra("--engine ray", "ray"):
        ray = importlib.import_module("ray")
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    return ray


def _connect(ray: Any) -> None:
    where = os.environ.get("RAY_ADDRESS", "auto")
    if where not in ("auto", "local"):
        _check_address(where)
    quiet = {"log_to_driver": False, "configure_logging": False, "namespace": "mind2web2"}
    try:
        if where != "local":
            with suppress(ConnectionError) if where == "auto" else nullcontext():
                ray.init(where, **quiet)
                return
        log.info("ray starts on this machine alone")
        ray.init("local", **quiet, object_store_memory=_OBJECT_STORE_BYTES, include_dashboard=False)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"Ray at {where} cannot be used: {reason}") from error


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise UsageError(
            "RAY_ADDRESS takes HOST:PORT of the cluster's head, such as 10.0.0.1:6379, not "
            f"{address}"
        )
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise UsageError(
            f"no Ray cluster answers at {address} ({error.strerror or error}): start one there "
            "with `ray start --head`, or correct RAY_ADDRESS"
        ) from error


def on_node(node_id: str) -> dict[str, Any]:
    """Return the options with which Ray runs something on this node or nowhere, and once."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    strategy = strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
    return {"num_cpus": 0, "scheduling_strategy": strategy}


def version_problem(version: str) -> str | None:
    """Return in one line that a node has another version than the command, if so."""
    if version == __version__:
        return None
    return f"it has mind2web2 {__version__}, the command has {version}: install the same version"
