"""A bare loop over OpenAI's SDK with aiohttp: what a run's requests are compared with.

python benchmarks/sdk_loop.py URL REQUESTS AT_ONCE
"""

from __future__ import annotations

import asyncio
import sys

from openai import AsyncOpenAI, DefaultAioHttpClient
from pydantic import BaseModel

PAGE = "The lake is deep and cold. " * 200


class Verdict(BaseModel):
    """As a judge replies."""

    reasoning: str
    result: bool


async def main(url: str, requests: int, at_once: int) -> None:
    """Send the requests, so many at once."""
    numbers = iter(range(requests))
    async with AsyncOpenAI(
        base_url=url, api_key="none", http_client=DefaultAioHttpClient()
    ) as client:

        async def ask_on() -> None:
            for number in numbers:
                text = f"{PAGE} The lake is {number} m deep."
                reply = await client.chat.completions.parse(
                    model="o4-mini",
                    messages=[{"role": "user", "content": text}],
                    response_format=Verdict,
                )
                assert reply.choices[0].message.parsed is not None

        await asyncio.gather(*(ask_on() for _ in range(at_once)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
