"""Write the keys of options.md, which the declarations of settings hold: ``make options``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.settings_file import file_settings

OPTIONS_PAGE = Path(__file__).with_name("options.md")


def file_keys() -> str:
    """Return the keys of ``mind2web2.toml``, each with an example."""
    lines = ["| key | for example |", "| --- | --- |"]
    for name, setting in file_settings().items():
        assert setting.in_file is not None
        lines.append(f"| `{name}` | `{setting.in_file.example}` |")
    return "\n".join(lines)


def with_keys(page: str) -> str:
    """Return the page with the keys between the two comments as the declarations have them."""
    begin, end = "<!-- keys: written by make options -->", "<!-- end of keys -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    assert rest and after, "options.md lacks the comments of the keys"
    return f"{before}{begin}\n{file_keys()}\n{end}{after}"


if __name__ == "__main__":
    OPTIONS_PAGE.write_text(with_keys(OPTIONS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
