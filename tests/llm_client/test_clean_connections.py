"""A reply belongs to the question that it was given to, whatever else a server sends."""

import asyncio
import json
import socket
import threading
from contextlib import suppress

import pytest
from pydantic import BaseModel
from servers.tcp_server import tcp_server

from mind2web2.llm_client.base_client import AsyncOpenAIClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.http_pool import HttpPool, Server

TURNS = 10


class Verdict(BaseModel):
    """The template."""

    result: bool


def reply(result):
    """Return a whole HTTP response with this verdict."""
    message = {"role": "assistant", "content": json.dumps({"result": result})}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def read_request(reader):
    """Read one request to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    )
    await reader.readexactly(int(length.partition(b":")[2]))


@pytest.mark.parametrize("is_doubled", [True, False])
async def test_a_second_reply_decides_no_other_question(is_doubled):
    """The connection that it came on is used no more; one on which nothing came is."""
    taken, sent = asyncio.Event(), asyncio.Event()

    async def serve(reader, writer):
        while True:
            await read_request(reader)
            writer.write(reply(False))
            await writer.drain()
            await taken.wait()
            if is_doubled:
                writer.write(reply(True))
                await writer.drain()
            sent.set()

    request = ChatRequest("gpt-4o", [{"role": "user", "content": "Is it so?"}], template=Verdict)
    async with tcp_server(serve) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        async with AsyncOpenAIClient(base_url=url, api_key="none") as client:
            for _ in range(3):
                taken.clear()
                sent.clear()
                answer = await client.chat(request)
                assert answer.value == Verdict(result=False)
                taken.set()
                await sent.wait()
                for _ in range(TURNS):
                    await asyncio.sleep(0)  # the loop reads pending data
    assert server.connections == (3 if is_doubled else 1)


def test_a_second_reply_that_a_busy_loop_has_not_read_decides_nothing():
    """It waits in the connection while the next question is sent."""
    is_read, has_sent_twice = threading.Event(), threading.Event()

    def serve(listening):
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(reply(False))
            is_read.wait(60)
            connection.sendall(reply(False))
            has_sent_twice.set()
            with suppress(ConnectionResetError):  # the client drops what it did not read
                connection.recv(65536)
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(reply(True))
            connection.recv(65536)

    async def ask_twice(url):
        pool = HttpPool(Server(url))
        try:
            await pool.request("GET", "/", timeout_s=20)
            is_read.set()
            has_sent_twice.wait(20)  # the loop stands still
            return await pool.request("GET", "/", timeout_s=20)
        finally:
            await pool.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        serving = threading.Thread(target=serve, args=(listening,))
        serving.start()
        port = listening.getsockname()[1]
        second = asyncio.run(ask_twice(f"http://127.0.0.1:{port}"))
        serving.join()
    assert b"true" in second.content


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_connection_that_was_closed_while_idle_is_no_failure(is_told):
    """The request is sent once more at once, over another one; both may be billed."""
    served = []

    async def serve(reader, writer):
        served.append(0)
        while True:
            await read_request(reader)
            if served[-1]:
                # As where the end of the connection and the request cross.
                writer.transport.abort() if is_told else writer.close()
                return
            served[-1] += 1
            writer.write(reply(True))
            await writer.drain()

    request = ChatRequest("gpt-4o", [{"role": "user", "content": "Is it so?"}])
    async with tcp_server(serve) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        async with AsyncOpenAIClient(base_url=url, api_key="none") as client:
            answers = [await client.chat(request) for _ in range(3)]
            assert client.retries.in_words() == ""
    assert [answer.attempts for answer in answers] == [1, 2, 2]
    assert served == [1, 1, 1]
