"""Processors and memory of a container."""

import os

import pytest

from mind2web2.utils import machine

GB = 1024**3


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Make control groups: the process's own list of them, and their settings by path."""

    def make(own, settings):
        (tmp_path / "own").write_text(own)
        for name, value in settings.items():
            path = tmp_path / "groups" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        monkeypatch.setattr(machine, "_OWN_GROUPS", tmp_path / "own")
        monkeypatch.setattr(machine, "_CGROUPS", tmp_path / "groups")

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 64 * GB, "SC_PAGE_SIZE": 1}.get)
    return make


@pytest.mark.parametrize(
    ("own", "settings", "processors", "memory"),
    [
        ("0::/", {"cpu.max": "150000 100000", "memory.max": 2 * GB}, 2, 2 * GB),
        ("0::/", {"cpu.max": "max 100000", "memory.max": "max"}, 16, 64 * GB),
        ("0::/a/b", {"a/cpu.max": "50000 100000", "a/b/memory.max": GB}, 1, GB),
        (
            "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n1:name=systemd:/",
            {
                "cpu,cpuacct/cpu.cfs_quota_us": 400000,
                "cpu,cpuacct/cpu.cfs_period_us": 100000,
                "memory/memory.limit_in_bytes": 3 * GB,
            },
            4,
            3 * GB,
        ),
        (
            "5:cpu:/\n4:memory:/",
            {
                "cpu/cpu.cfs_quota_us": -1,
                "cpu/cpu.cfs_period_us": 100000,
                "memory/memory.limit_in_bytes": 2**63 - 4096,
            },
            16,
            64 * GB,
        ),
        ("", {}, 16, 64 * GB),
    ],
)  # fmt: skip
def test_the_limits_of_a_container_count(groups, own, settings, processors, memory):
    groups(own, settings)
    assert (machine.processors(), machine.memory_bytes()) == (processors, memory)
