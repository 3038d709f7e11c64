"""Write the parts of options.md that the declarations of settings hold: ``make options``."""

from __future__ import annotations

import re
from pathlib import Path

from mind2web2.cli.options import default_text
from mind2web2.cli.parsers.evaluate import evaluation_settings
from mind2web2.cli.settings_file import file_settings
from mind2web2.runs.setting import Setting

OPTIONS_PAGE = Path(__file__).with_name("options.md")
_OPTION = re.compile(r"(?<![\w`-])(--[a-z_]+)")


def evaluate_table() -> str:
    """Return the table of all options of ``evaluate``."""
    rows = ["| option | default | |", "| --- | --- | --- |"]
    for setting in evaluation_settings().values():
        rows += _rows(setting)
    return "\n".join(rows)


def _rows(setting: Setting) -> list[str]:
    rows: list[str] = []
    if setting.parse is not None:
        # The help names the words of a choice.
        metavar = "WORD" if setting.value_name.startswith("{") else setting.metavar
        default = _in_markdown(default_text(setting, setting.default))
        details = f", [details]({setting.see})" if setting.see else ""
        rows.append(
            f"| `{setting.option} {metavar}` | {default} | {_in_markdown(setting.help)}{details} |"
        )
    rows += [
        f"| `{option}` | | {_in_markdown(flag.help)} |" for option, flag in setting.flags.items()
    ]
    return rows


def _in_markdown(text: str) -> str:
    return _OPTION.sub(r"`\1`", text).replace("|", "\\|").replace("*", "\\*")


def file_keys() -> str:
    """Return the keys of ``mind2web2.toml``, each with an example."""
    lines = ["| key | for example |", "| --- | --- |"]
    for name, setting in file_settings().items():
        assert setting.in_file is not None
        lines.append(f"| `{name}` | `{setting.in_file.example}` |")
    return "\n".join(lines)


PARTS = {"evaluate": evaluate_table, "keys": file_keys}


def with_parts(page: str) -> str:
    """Return the page with each part between its two comments as the declarations have it."""
    for name, part in PARTS.items():
        begin, end = (
            f"<!-- {name}: written by make options -->",
            f"<!-- end of {name} -->",
        )
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        assert rest and after, f"options.md lacks the comments of {name}"
        page = f"{before}{begin}\n{part()}\n{end}{after}"
    return page


if __name__ == "__main__":
    OPTIONS_PAGE.write_text(with_parts(OPTIONS_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
