"""Open a connection to the first of several addresses that answers."""

from __future__ import annotations

import asyncio
import errno
import socket

from mind2web2.capture.addresses import IPAddress
from mind2web2.capture.destinations import ConnectFailure, Destination, DestinationFailedError

CONNECT_TIMEOUT_S = 10.0
# A silent address holds the next one up no longer than this (RFC 8305).
NEXT_ADDRESS_DELAY_S = 0.25
MAX_ADDRESSES = 8


async def connect(host: str, destination: Destination) -> socket.socket:
    """Return a connected socket to one of a destination's addresses.

    Raises:
        DestinationFailedError: none of them answered as hoped within the time limit.
    """
    attempts: dict[asyncio.Task[socket.socket], IPAddress] = {}
    errors: list[OSError] = []
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            for address in destination.addresses[:MAX_ADDRESSES]:
                attempts[asyncio.create_task(_connect_to(address, destination.port))] = address
                if (winner := await _first_of(attempts, errors, NEXT_ADDRESS_DELAY_S)) is not None:
                    return winner
            while attempts:
                if (winner := await _first_of(attempts, errors, None)) is not None:
                    return winner
    except TimeoutError as error:
        reason = f"{host} did not answer within {CONNECT_TIMEOUT_S:g} s"
        raise DestinationFailedError(ConnectFailure("timeout", reason)) from error
    finally:
        await _abandon(attempts)
    raise DestinationFailedError(_failure(host, errors))


async def _first_of(
    attempts: dict[asyncio.Task[socket.socket], IPAddress], errors: list[OSError], delay_s: float | None
) -> socket.socket | None:
    """Wait until an attempt is over; take it out and return its socket if it has one."""
    done, _ = await asyncio.wait(attempts, timeout=delay_s, return_when=asyncio.FIRST_COMPLETED)
    for attempt in done:
        error = attempt.exception()
        if error is None:
            del attempts[attempt]
            return attempt.result()
        if not isinstance(error, OSError):
            raise error
        del attempts[attempt]
        errors.append(error)
    return None


async def _connect_to(address: IPAddress, port: int) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (str(address), port))
    except BaseException:
        connection.close()
        raise
    return connection


async def _abandon(attempts: dict[asyncio.Task[socket.socket], IPAddress]) -> None:
    for attempt in attempts:
        attempt.cancel()
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(outcome, socket.socket):
            outcome.close()


def _failure(host: str, errors: list[OSError]) -> ConnectFailure:
    """Say why nobody answered; a refusal says more than an address that leads nowhere from here."""
    refusal = next((error for error in errors if error.errno == errno.ECONNREFUSED), None)
    if refusal is not None:
        return ConnectFailure("connection_refused", f"{host} refuses connections")
    if any(error.errno == errno.ETIMEDOUT for error in errors):
        return ConnectFailure("timeout", f"{host} did not answer")
    reasons = "; ".join(dict.fromkeys(error.strerror or str(error) for error in errors))
    return ConnectFailure("unreachable", f"{host} cannot be reached: {reasons}")
