"""New tasks pass their rehearsal from the start."""

import pytest

from mind2web2.cli import main


@pytest.mark.parametrize("options", [[], ["--python"], ["--question", 'Which: one? {x} "y" #z']])
def test_a_new_task_passes_its_rehearsal(tmp_path, monkeypatch, capsys, options):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my_task", *options]) == 0
    assert main(["rehearse", "my_task", "--write_cases", "--strict", "-v"]) == 0
    shown = capsys.readouterr().out
    assert "case no_citations: expected 0, got 0" in shown
    assert "case without_branches_2: expected 0.67, got 0.67" in shown
    assert main(["rehearse", "my_task", "--no_run", "-v"]) == 0
    assert (options[-1] if len(options) == 2 else "Which library") in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["new", "my_task", "--version", "later"]) == 2
    assert "is there already" in capsys.readouterr().err
