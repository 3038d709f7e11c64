"""Options: how they are spelled, checked, and turned into the settings of a run."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from mind2web2.errors import UsageError
from mind2web2.llm_client.settings import DEFAULT_JUDGE_MODEL
from mind2web2.runs.setting import Setting
from mind2web2.runs.settings import (
    FILE_NAME,
    FOLDER_NAMES,
    GROUP_HELPS,
    JUDGE_HELP,
    JUDGE_SETTINGS,
    SETTINGS,
    RunSettings,
    provider,
    provider_names,
)
from mind2web2.utils import values
from mind2web2.utils.hidden_keys import hide_in_process_list
from mind2web2.utils.names import nearest_name

_Value = TypeVar("_Value")
Handler = Callable[[argparse.Namespace], int]
# A name in quotes, since argparse's class takes no parameter when the module is loaded.
Subcommands: TypeAlias = "argparse._SubParsersAction[CommandParser]"

_AS_DECLARED: Mapping[str, Mapping[str, Any]] = {}
# How settings read for a command that replays nothing, and does not continue by itself.
ASKING: Mapping[str, Mapping[str, Any]] = {
    "llm_provider": {"help": JUDGE_HELP, "parse": provider, "choices": provider_names},
    "judge_model": {"default_text": DEFAULT_JUDGE_MODEL},
    "max_cost": {
        "help": "stop asking when this many dollars are spent; start the command again to go on"
    },
}
_LONG_OPTION = re.compile(r"--[a-z][a-z_-]*(?=$|=)")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the paragraphs of descriptions.

    Lines with an indent, such as examples, stay as they are.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = []
        for is_kept, group in groupby(text.splitlines(), key=lambda line: line[:1] in ("", " ")):
            lines = list(group)
            parts += lines if is_kept else textwrap.wrap(" ".join(lines), width)
        return "".join(f"{indent}{line}\n" for line in parts)


# Less alike, an option is more likely to be of another command.
_SAME_WORD = 0.8


# A command with no more options shows all of them in its help.
_MAX_SHOWN = 20


class CommandParser(argparse.ArgumentParser):
    """A parser that takes ``--like-this`` for ``--like_this``, and each single-valued option once.

    The help of a command with many options shows the common ones; ``--help all`` shows all.
    """

    def __init__(self, **keywords: Any) -> None:
        keywords["add_help"] = False
        super().__init__(formatter_class=_HelpFormatter, allow_abbrev=False, **keywords)
        self.add_argument("-h", "--help", action=_HelpAction, nargs="?", help=argparse.SUPPRESS)
        # The options that only --help all shows.
        self.rare: list[argparse.Action] = []
        # Names of tasks and answers may begin with a dash: only known options are read as options.
        self._negative_number_matcher = re.compile("-[^-]")
        self.register("action", None, _StoreOnce)
        self.register("action", "store", _StoreOnce)
        self.register("type", Path, argument(values.local_path))
        for parse in _VALUES:
            self.register("type", parse.__name__, argument(parse))

    def add_settings(
        self,
        names: Iterable[str],
        *,
        base: RunSettings | None = None,
        changed: Mapping[str, Mapping[str, Any]] = _AS_DECLARED,
        group: argparse._ArgumentGroup | None = None,
    ) -> None:
        """Add the options of settings, in the groups of their declarations.

        Args:
            base: has the defaults of this command.
            changed: parts of declarations that read differently for this command, by setting.
            group: takes all of them.
        """
        defaults = base or RunSettings()
        groups: dict[str, argparse._ArgumentGroup | argparse.ArgumentParser] = {"": self}
        taken: frozenset[str] = self.get_default("takes") or frozenset()
        for name in names:
            setting = replace(SETTINGS[name], **changed.get(name, {}))
            if group is None and setting.group not in groups:
                groups[setting.group] = self.add_argument_group(
                    setting.group, GROUP_HELPS.get(setting.group)
                )
            added = _add_setting(group or groups[setting.group], setting, getattr(defaults, name))
            if not setting.is_common:
                self.rare += added
            taken |= {name}
        self.set_defaults(base=defaults, takes=taken)

    def add_task_option(self, default: str = "all that have answers") -> None:
        """Add ``--task_id``, which may be repeated."""
        self.add_settings(["task_ids"], changed={"task_ids": {"default_text": default}})

    def add_judge_settings(
        self,
        *others: str,
        judges: str = "",
        base: RunSettings | None = None,
        changed: Mapping[str, Mapping[str, Any]] = _AS_DECLARED,
        group: argparse._ArgumentGroup | None = None,
    ) -> None:
        """Add the options of the judge for a command that replays nothing.

        Args:
            others: further settings.
            judges: the help of a ``--judge_model`` that names several, as ``judge_models``.
            base: as for ``add_settings``, and so the rest.
        """
        names = list(JUDGE_SETTINGS)
        if judges:
            names.remove("judge_model")
            target = group or self
            target.add_argument(
                "--judge_model",
                metavar="M",
                type="non_empty",
                action="append",
                dest="judge_models",
                help=judges,
            )
            # mind2web2.toml may name it.
            self.set_defaults(takes=frozenset({"judge_model"}))
        self.add_settings((*names, *others), base=base, changed={**ASKING, **changed}, group=group)

    def add_run_settings(self, leave_out: Collection[str]) -> None:
        """Add all settings of a run but some."""
        self.add_settings(name for name in SETTINGS if name not in leave_out)

    def add_judging_settings(self, changed: Mapping[str, Mapping[str, Any]]) -> None:
        """Add all settings of a run that asks a judge: its scripts, limits and costs as well."""
        groups = ("judge", "limits", "costs", "eval scripts")
        names = [name for name, each in SETTINGS.items() if each.group in groups]
        names.remove("judgments")
        self.add_settings(names, changed={**ASKING, **changed})

    def add_json_option(self, what: str = "the figures") -> None:
        """Add ``--json``."""
        self.add_argument("--json", action="store_true", help=f"print {what} as JSON")

    def add_folder_options(self, *names: str) -> None:
        """Add options for the project's folders, all of them by default."""
        self.add_settings(names or FOLDER_NAMES)

    def format_help(self) -> str:
        """Return the whole help; its usage has no list of options."""
        if self.usage is None:
            self.usage = self._usage_line()
        return super().format_help()

    def _usage_line(self) -> str:
        with _hidden(self._options()):
            usage = self.format_usage().removeprefix("usage: ").removeprefix(self.prog)
        return " ".join(["%(prog)s [options]", *usage.split()])

    def _options(self) -> list[argparse.Action]:
        return [action for action in self._actions if action.option_strings]

    def format_short_help(self) -> str:
        """Return the help without the rare options."""
        if not self.rare or len(self._options()) <= _MAX_SHOWN:
            return self.format_help()
        with _hidden(self.rare):
            text = self.format_help()
        return f"{text}\n{self.prog} --help all shows {len(self.rare)} more options.\n"

    def error(self, message: str) -> NoReturn:
        """Print one line, without the usage, and exit."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")

    def parse_known_args(  # type: ignore[override]  # typeshed's overloads differ in the namespace only
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and refuse unknown options here rather than in the parent parser."""
        words = sys.argv[1:] if args is None else args
        known, unknown = super().parse_known_args(
            [_with_underscores(word) for word in words], namespace
        )
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._guess_option(unknown)}")
        return known, unknown

    def _guess_option(self, unknown: Sequence[str]) -> str:
        """Return which option was probably meant, as the end of a message."""
        options = re.findall(r"(?<![\w-])--\w+", self.format_help())
        for word in unknown:
            if not word.startswith("--"):
                continue
            close = nearest_name(word.partition("=")[0], options, _SAME_WORD)
            if close is not None:
                return f": did you mean {close}?"
        return ""


@contextmanager
def _hidden(options: Iterable[argparse.Action]) -> Iterator[None]:
    """Leave options out of the help for a while."""
    helps = {action: action.help for action in options}
    for action in helps:
        action.help = argparse.SUPPRESS
    try:
        yield
    finally:
        for action, help_text in helps.items():
            action.help = help_text


class _HelpAction(argparse.Action):
    """Print the help, with ``all`` that of all options, and exit."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: Any,  # noqa: ARG002 (argparse's signature)
        values: Any,
        option_string: str | None = None,  # noqa: ARG002 (likewise)
    ) -> None:
        assert isinstance(parser, CommandParser)
        text = parser.format_help() if values == "all" else parser.format_short_help()
        sys.stdout.write(text)
        parser.exit()


class _StoreOnce(argparse.Action):
    """Store a value, or the constant of an option without one.

    Refuse the same option a second time.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: Any,  # any object with attributes
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None:
            seen: frozenset[str] = getattr(namespace, "seen", frozenset())
            if self.dest in seen:
                parser.error(f"--{self.dest} was given twice")
            namespace.seen = seen | {self.dest}
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


def _with_underscores(word: str) -> str:
    name = _LONG_OPTION.match(word)
    return word if name is None else "--" + name[0][2:].replace("-", "_") + word[name.end() :]


# The values of options, each by the name of its function: ``type="positive_int"``.
_VALUES = (
    values.non_empty,
    values.positive_int,
    values.count,
    values.port_number,
    values.positive_seconds,
    values.share,
    values.web_address,
)


def argument(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return the type of an argument, which shows the sentence of a ``ValueError``."""

    def parsed(text: str) -> _Value:
        try:
            return parse(text)
        except (ValueError, UsageError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def _secret(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return the same type, which also hides the argument in this machine's list of processes."""

    def parsed(text: str) -> _Value:
        try:
            return parse(text)
        finally:
            hide_in_process_list(text)

    return parsed


def _add_setting(
    group: argparse._ArgumentGroup | argparse.ArgumentParser,
    setting: Setting,
    default: object,
) -> list[argparse.Action]:
    """Add the options of a setting, and return them."""
    added = []
    options = len(setting.flags) + (setting.parse is not None)
    target = group.add_mutually_exclusive_group() if options > 1 else group
    if setting.parse is not None:
        parse = argument(setting.parse)
        if setting.is_secret:
            parse = _secret(parse)
        added.append(
            target.add_argument(
                setting.option,
                action="append" if setting.is_repeated else "store",
                dest=setting.name,
                metavar=setting.value_name,
                type=parse,
                default=argparse.SUPPRESS,
                help=_help(setting, default),
            )
        )
    for name, flag in setting.flags.items():
        added.append(
            target.add_argument(
                name,
                action="store",
                nargs=0,
                dest=setting.name,
                const=flag.value,
                default=argparse.SUPPRESS,
                help=flag.help.replace("%", "%%"),
            )
        )
    return added


def _help(setting: Setting, default: object) -> str:
    text = default_text(setting, default)
    return (
        f"{setting.help} (default: {text})".replace("%", "%%")
        if text
        else setting.help.replace("%", "%%")
    )


def default_text(setting: Setting, default: object) -> str:
    """Return the default of a setting in words, empty where nothing is the default."""
    if default != setting.default or not setting.default_text:
        return (
            ""
            if default in (None, (), False)
            else f"{default:g}"
            if isinstance(default, float)
            else str(default)
        )
    return setting.default_text


def given_settings(options: argparse.Namespace) -> RunSettings:
    """Return the settings of the command line, the others with the command's defaults."""
    base: RunSettings = options.base
    values: dict[str, Any] = {}
    for name, value in vars(options).items():
        if name in SETTINGS and value is not None:
            values[name] = tuple(value) if isinstance(value, list) else value
    return replace(base, **values, given=frozenset(values))


def settings_of(
    options: argparse.Namespace,
    *,
    is_announced: bool = False,
    leave_out: Collection[str] = (),
    **named: Any,
) -> RunSettings:
    """Return the settings of a command, as command line and ``mind2web2.toml`` give them.

    Args:
        leave_out: settings that the file does not give.
        named: settings that count as if the command line had them.

    Raises:
        UsageError: as ``settings_with_file``.
    """
    settings = given_settings(options)
    settings = replace(settings, **named, given=settings.given | named.keys())
    if not os.path.lexists(FILE_NAME):
        return settings
    settings_with_file = load_function("mind2web2.cli.settings_file:settings_with_file")
    takes = options.takes.difference(leave_out)
    completed: RunSettings = settings_with_file(settings, takes, is_announced=is_announced)
    return completed


def add_audits_root(parser: argparse.ArgumentParser) -> None:
    """Add the folder of human labels."""
    parser.add_argument(
        "--audits_root",
        metavar="DIR",
        type=Path,
        default=Path("audits"),
        help="people's labels (default: audits/)",
    )


def add_correction_roots(parser: argparse.ArgumentParser) -> None:
    """Add the folders of labels and of answers that were judged again."""
    add_audits_root(parser)
    parser.add_argument(
        "--rejudged_root",
        metavar="DIR",
        type=Path,
        default=Path("rejudged"),
        help="samples judged again by a strong judge (default: rejudged/)",
    )


def load_function(name: str) -> Any:
    """Import ``module:function`` and return the function; that of ``module`` is ``run``."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function or "run")
