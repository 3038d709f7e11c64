"""How a setting of a run is declared, in ``RunSettings``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Flag:
    """An option without a value, which sets its setting to ``value``."""

    value: object
    help: str


@dataclass(frozen=True)
class InFile:
    """How a setting stands in ``mind2web2.toml``.

    Args:
        example: the right side of a line.
        kinds: Python's types of such a value.
        parse: turns the file's value into the setting's, where the option's ``parse`` of the text
            does not.
    """

    example: str
    kinds: tuple[type, ...]
    parse: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Setting:
    """The declaration of one setting.

    Args:
        help: a sentence without its final stop.
        parse: turns the option's text into the value; ``None`` for a setting that only flags set.
        metavar: what stands for the value in the help.
        choices: returns the values, which the help lists.
        group: of options in the help.
        default_text: the default in words, where the value does not say it.
        option: default: ``--NAME``.
        flags: options without a value by their names, of which an empty one stands for ``--NAME``.
        is_repeated: the option may be repeated; the value is a tuple.
        is_secret: the value may hold a password.
        in_file: ``None`` for a setting of the command line alone.
        is_common: shown by ``--help``; the others by ``--help all``.
        name: of the field in ``RunSettings``; it and ``default``, the field's, are filled in.
    """

    help: str = ""
    parse: Callable[[str], Any] | None = None
    metavar: str = ""
    choices: Callable[[], Sequence[str]] | None = None
    group: str = ""
    default_text: str = ""
    option: str = ""
    flags: Mapping[str, Flag] = field(default_factory=dict)
    is_repeated: bool = False
    is_secret: bool = False
    in_file: InFile | None = None
    is_common: bool = False
    name: str = ""
    default: object = None

    @property
    def value_name(self) -> str:
        """Return what stands for the value in the help."""
        if self.choices is None:
            return self.metavar
        return f"{{{','.join(self.choices())}}}"


# The key of a field's metadata.
KEY = "setting"


def setting(default: Value, declared: Setting) -> Value:
    """Declare a setting as the default of its field."""
    made: Value = field(default=default, repr=not declared.is_secret, metadata={KEY: declared})
    return made


def flag(
    help: str,
    *,
    group: str = "",
    in_file: InFile | None = None,
    is_common: bool = False,
) -> bool:
    """Declare a setting that is off unless its option is given."""
    flags = {"": Flag(True, help)}
    declared = Setting(flags=flags, group=group, in_file=in_file, is_common=is_common)
    return setting(False, declared)


def declared_in(owner: type) -> dict[str, Setting]:
    """Return the settings that the fields of a dataclass declare, by their names."""
    return {
        each.name: _complete(each.name, each.default, each.metadata[KEY])
        for each in fields(owner)
        if KEY in each.metadata
    }


def _complete(name: str, default: object, declared: Setting) -> Setting:
    flags = {flag or f"--{name}": meaning for flag, meaning in declared.flags.items()}
    return replace(
        declared,
        name=name,
        default=default,
        option=declared.option or f"--{name}",
        flags=flags,
    )
