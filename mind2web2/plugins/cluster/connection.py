"""A Ray cluster, on which shards are judged and pages are captured."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel

from mind2web2.errors import UsageError
from mind2web2.utils.private_attributes import check_private_attributes

log = logging.getLogger(__name__)

MIN_RAY = (2, 60)
# This process starts Ray with a small object store, since nothing large passes through it.
_OBJECT_STORE_BYTES = 100 * 1024**2
_CONNECT_TIMEOUT_S = 10.0


@asynccontextmanager
async def connect_ray(address: str | None) -> AsyncIterator[Any]:
    """Connect to the Ray cluster at an address, or to the one that Ray finds or starts.

    Yield the module.

    Raises:
        UsageError: Ray is missing or too old, or the address does not answer.
    """
    ray = await asyncio.to_thread(_import_ray)
    try:
        await asyncio.to_thread(_connect, ray, address)
        yield ray
    finally:
        await asyncio.to_thread(ray.shutdown)


def _import_ray() -> Any:
    try:
        found = version("ray")
    except PackageNotFoundError as error:
        raise UsageError("--engine ray needs Ray: run `pip install 'mind2web2[ray]'`") from error
    if tuple(map(int, found.split(".")[:2])) < MIN_RAY:
        raise UsageError(
            f"--engine ray needs Ray 2.60 or newer, not {found}: run `pip install -U ray`"
        )
    # No statistics to Ray's makers, and no copy of this process's environment and folder on the
    # nodes.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    # A command that is terminated, as at the time limit of a Slurm job, prints no stack of Ray.
    os.environ["RAY_DISABLE_FAILURE_SIGNAL_HANDLER"] = "1"
    ray = importlib.import_module("ray")
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    check_private_attributes("ray")
    private: Any = importlib.import_module("ray._private")
    private.worker.print_to_stdstream = _log_message
    private.utils.get_entrypoint_name = lambda: "mind2web2"
    return ray


class _LogMessage(BaseModel):
    """A report from Ray's processes."""

    lines: object = ""


def _log_message(message: Mapping[str, object], **_: object) -> None:
    lines = _LogMessage.model_validate(message).lines
    log.info("ray: %s", " ".join(str(lines)[:500].split()))


def _connect(ray: Any, address: str | None) -> None:
    where = address or os.environ.get("RAY_ADDRESS", "auto")
    if where not in ("auto", "local"):
        _check_address(where)
    quiet = {
        "log_to_driver": False,
        "configure_logging": False,
        "namespace": "mind2web2",
    }
    try:
        if where != "local":
            with suppress(ConnectionError) if where == "auto" else nullcontext():
                ray.init(where, **quiet)
                return
        log.info("ray starts on this machine alone")
        ray.init(
            "local",
            **quiet,
            object_store_memory=_OBJECT_STORE_BYTES,
            include_dashboard=False,
        )
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"Ray at {where} cannot be used: {reason}") from error


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise UsageError(
            "--ray_address takes HOST:PORT of the cluster's head, such as 10.0.0.1:6379, not "
            f"{address}: run "
            "the command on a machine of the cluster"
        )
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise UsageError(
            f"no Ray cluster answers at {address} ({error.strerror or error}): start one there "
            "with "
            "`ray start --head`, or correct --ray_address"
        ) from error


def on_node(node_id: str) -> Any:
    """Return where Ray is to run something: on this node or nowhere."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
