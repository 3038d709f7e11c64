"""The machine's memory, or the container's."""

import os

import pytest

from mind2web2.utils import machine

MACHINE_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("1000\n", 1000), ("max\n", MACHINE_BYTES), (None, MACHINE_BYTES)],
)
def test_the_memory_limit_of_a_container_counts(tmp_path, monkeypatch, limit, expected):
    path = tmp_path / "memory.max"
    if limit is not None:
        path.write_text(limit)
    monkeypatch.setattr(machine, "_CONTAINER_MEMORY", path)
    assert machine.memory_bytes() == expected
    assert machine.processors() >= 1
