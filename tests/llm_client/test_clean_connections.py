"""A reply belongs to the question that it was given to, whatever else a server sends."""

import asyncio
import json

import pytest
from pydantic import BaseModel
from servers.tcp_server import tcp_server

from mind2web2.llm_client.base_client import AsyncOpenAIClient
from mind2web2.llm_client.chat import ChatRequest

TURNS = 10


class Verdict(BaseModel):
    """The template."""

    result: bool


def reply(result):
    """Return a whole HTTP response with this verdict."""
    message = {"role": "assistant", "content": json.dumps({"result": result})}
    body = json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"}]}
    ).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def read_request(reader):
    """Read one request to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        line
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
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

    request = ChatRequest(
        "gpt-4o", [{"role": "user", "content": "Is it so?"}], template=Verdict
    )
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
