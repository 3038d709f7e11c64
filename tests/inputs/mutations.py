"""Nearly sound inputs, with cuts, repeats and exchanges from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from inputs.hostile_files import HOSTILE_PIECES

MAX_CHANGES = 6
_MAX_REPEATS = 3000

# Values that parsers stumble over, as they stand in files.
_ODD_VALUES = (
    b"",
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1",
    b"0.5",
    b"[]",
    b"{}",
    b'""',
    b'"\\ud800"',
    b'"\\u0000"',
    b"9" * 400,
    b"9" * 5000,
    b"[" * 5000,
    b'{"a":' * 5000,
    b'"' + b"x" * 300 + b'"',
    b'"../../x"',
    b'"/"',
    b'".."',
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xe2\x80\xae",
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"\r\n",
    b"charset=punycode",
    b"charset=undefined",
    b"filename*=idna''a%ff",
    b"charset*0=",
    b"Fri, 31 Dec 99999999999 1:1:1",
    *(piece.encode("utf-8", "surrogatepass") for piece in HOSTILE_PIECES),
)

_Change = Callable[[bytearray, random.Random], None]


def mutated(seeds: Sequence[bytes], source: random.Random) -> bytes:
    """Return one of the seeds with a few changes."""
    content = bytearray(source.choice(seeds))
    for _ in range(source.randint(1, MAX_CHANGES)):
        source.choice(_CHANGES)(content, source)
    return bytes(content)


def _place(content: bytearray, source: random.Random) -> tuple[int, int]:
    start = source.randint(0, len(content))
    return start, min(len(content), start + source.choice((1, 2, 4, 16, 200)))


def _cut_off(content: bytearray, source: random.Random) -> None:
    del content[source.randint(0, len(content)) :]


def _left_out(content: bytearray, source: random.Random) -> None:
    start, end = _place(content, source)
    del content[start:end]


def _replaced(content: bytearray, source: random.Random) -> None:
    start, end = _place(content, source)
    content[start:end] = source.randbytes(end - start)


def _bit_turned(content: bytearray, source: random.Random) -> None:
    if content:
        content[source.randrange(len(content))] ^= 1 << source.randrange(8)


def _inserted(content: bytearray, source: random.Random) -> None:
    start, _ = _place(content, source)
    content[start:start] = source.choice(_ODD_VALUES)


def _exchanged(content: bytearray, source: random.Random) -> None:
    """Put an odd value in the place of one between commas and the like."""
    ends = [at for at, byte in enumerate(content) if byte in b',:[]{}" \n'] or [0]
    start = source.choice(ends) + 1
    end = next((at for at in ends if at >= start), len(content))
    content[start:end] = source.choice(_ODD_VALUES)


def _repeated(content: bytearray, source: random.Random) -> None:
    start, end = _place(content, source)
    content[start:start] = bytes(content[start:end]) * source.choice(
        (1, 2, 30, _MAX_REPEATS // max(1, end - start))
    )


_CHANGES: tuple[_Change, ...] = (
    _cut_off,
    _left_out,
    _replaced,
    _bit_turned,
    _inserted,
    _exchanged,
    _exchanged,
    _repeated,
)
