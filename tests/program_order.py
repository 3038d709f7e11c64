"""Scripts in program order, in one run of the script: what passes must equal."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from mind2web2.runs import answer
from mind2web2.scripts.isolation.run import isolated_result


async def _result(run, isolation):
    return await isolated_result(replace(run, ahead=None), isolation)


@contextmanager
def program_order() -> Iterator[None]:
    """Run scripts in program order in the block."""
    with patch.object(answer, "isolated_result", _result):
        yield
