"""How options are spelled and read."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from mind2web2.utils.path_config import PathConfig

Handler = Callable[[argparse.Namespace], int]
Subcommands = Any  # argparse keeps the type of its subparsers' action to itself

JUDGE_PROVIDERS = ("openai", "azure_openai", "bedrock_anthropic")
JUDGE_PROVIDERS_HELP = (
    "who judges (default: openai). openai needs OPENAI_API_KEY (and takes OPENAI_BASE_URL); "
    "azure_openai AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL, AZURE_OPENAI_API_VERSION; "
    "bedrock_anthropic AWS_ACCESS_KEY, AWS_SECRET_KEY, AWS_REGION and the extra 'bedrock'"
)

_BYTES_A_UNIT = {"M": 1024**2, "G": 1024**3}
_LONG_OPTION = re.compile(r"--[a-z][a-z_-]*(?=$|=)")


class CommandParser(argparse.ArgumentParser):
    """A parser that takes ``--like-this`` for ``--like_this``, and each single-valued option once.

    The names of the options that were given are in ``given`` of the namespace.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **keywords)
        self.register("action", None, _StoreOnce)
        self.register("action", "store", _StoreOnce)

    def error(self, message: str) -> NoReturn:
        """Print one line without the usage, which would hide it, and exit."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")

    def parse_known_args(  # type: ignore[override]  # typeshed's overloads differ in the namespace only
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse with underscores in the names of options, and refuse unknown ones under one's own usage."""
        given = sys.argv[1:] if args is None else args
        known, unknown = super().parse_known_args([_with_underscores(word) for word in given], namespace)
        if unknown:
            self.error(
                f"unrecognized arguments: {' '.join(getattr(word, 'typed', word) for word in unknown)}"
            )
        return known, unknown


class _StoreOnce(argparse.Action):
    """Store a value, of an option without one its constant; a second for the same option is an error."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None:
            given = given_options(namespace)
            if self.dest in given:
                parser.error(f"--{self.dest} was given twice")
            namespace.given = given | {self.dest}
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


class _OptionWord(str):
    """An option as we spell it, which remembers how it was typed."""

    __slots__ = ("typed",)
    typed: str


def given_options(options: argparse.Namespace) -> frozenset[str]:
    """Return the names of the single-valued options on the command line."""
    given: frozenset[str] = getattr(options, "given", frozenset())
    return given


def _with_underscores(word: str) -> str:
    name = _LONG_OPTION.match(word)
    if name is None or isinstance(word, _OptionWord):
        return word
    ours = _OptionWord("--" + name[0][2:].replace("-", "_") + word[name.end() :])
    ours.typed = word
    return ours


def positive_int(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def count(text: str) -> int:
    """Return a whole number, 0 included."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def positive_seconds(text: str) -> float:
    """Return a positive number of seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return seconds


def positive_dollars(text: str) -> float:
    """Return a positive number of dollars."""
    try:
        dollars = float(text.removeprefix("$"))
    except ValueError:
        dollars = math.nan
    if not 0 < dollars < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of dollars")
    return dollars


def byte_count(text: str) -> int:
    """Return an amount of memory in bytes, given in megabytes or gigabytes: ``512M``, ``1.5G``."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?) ?([MG])(?:i?B)?", text.strip(), re.IGNORECASE)
    size = round(float(found[1]) * _BYTES_A_UNIT[found[2].upper()]) if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of memory such as 512M or 2G")
    return size


def as_of(text: str) -> datetime | Literal["answer"]:
    """Return the moment that scripts take for now, or that each answer names its own."""
    from mind2web2.script_clock import parsed_moment

    if text == "answer":
        return "answer"
    try:
        return parsed_moment(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a date such as 2025-03-14 nor 'answer'"
        ) from None


def browser_address(text: str) -> str:
    """Return the address of a running browser."""
    try:
        address = urlsplit(text)
        is_address = address.scheme in ("http", "https", "ws", "wss") and bool(address.hostname)
        is_address = is_address and address.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise argparse.ArgumentTypeError(f"{text!r} is no address such as http://127.0.0.1:9222")
    return text


def temperature(text: str) -> float:
    """Return a sampling temperature."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a temperature from 0 to 2")
    return value


def add_task_option(parser: argparse.ArgumentParser, default: str = "all that have answers") -> None:
    """Add ``--task_id``, which may be repeated."""
    parser.add_argument(
        "--task_id",
        metavar="ID",
        action="append",
        dest="task_ids",
        help=f"this task only; may be repeated (default: {default})",
    )


def add_judge_parameters(group: argparse._ArgumentGroup) -> None:
    """Add the options that say which server judges, and how."""
    group.add_argument("--judge_base_url", metavar="URL", help="an OpenAI-compatible or other server")
    group.add_argument(
        "--judge_reasoning_effort", metavar="E", help="for reasoning models, such as low, medium or high"
    )
    group.add_argument(
        "--judge_temperature",
        metavar="T",
        type=temperature,
        help="default: 0, and none for reasoning models",
    )


def add_folder_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options for the project's folders."""
    group = parser.add_argument_group("folders")
    helps = {
        "answer_folder": "the agents' answers (default: answers/)",
        "eval_scripts_root": "the tasks' eval scripts (default: eval_scripts/)",
        "eval_results_root": "where results go (default: eval_results/)",
        "cache_root": "the cached pages (default: cache/)",
    }
    for name in names:
        group.add_argument(f"--{name}", metavar="DIR", type=Path, help=helps[name])


def paths_of(options: argparse.Namespace) -> PathConfig:
    """Return the folders that the options name, the others under the working directory."""
    from mind2web2.utils.path_config import PathConfig

    given = vars(options)
    return PathConfig(Path()).apply_overrides(
        answers_root=given.get("answer_folder"),
        eval_scripts_root=given.get("eval_scripts_root"),
        eval_results_root=given.get("eval_results_root"),
        cache_root=given.get("cache_root"),
        eval_version=given.get("eval_version"),
    )
