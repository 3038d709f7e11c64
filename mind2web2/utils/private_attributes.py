"""All private attributes of other packages that we use, and the check before first use."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

from mind2web2.errors import MachineError


class PrivateAttribute(NamedTuple):
    """An attribute that an upgrade of its package may remove without notice.

    Args:
        package: as it is named in ``REQUIREMENTS``.
        module: the module with its class.
        kind: the class, or a module in a package.
        attribute: a member of it, or an attribute that the class's ``__init__`` sets.
        purpose: why no public way serves.
    """

    package: str
    module: str
    kind: str
    attribute: str
    purpose: str


# The versions to install, as in pyproject.toml: each bounded above, since these attributes may
# change.
REQUIREMENTS = {
    "arxiv": "arxiv>=4.0,<5",
    "patchright": "patchright>=1.64,<2",
    "pydantic": "pydantic>=2.14,<3",
    "ray": "ray>=2.60,<3",
    "time-machine": "time-machine>=3.6,<4",
}
PRIVATE_ATTRIBUTES = (
    PrivateAttribute(
        "arxiv",
        "arxiv",
        "Client",
        "_session",
        "limit the time and size of arXiv's replies",
    ),
    PrivateAttribute(
        "patchright",
        "patchright._impl",
        "_transport",
        "get_driver_env",
        "start the browser's driver without keys",
    ),
    PrivateAttribute(
        "pydantic",
        "pydantic",
        "BaseModel",
        "__pydantic_serializer__",
        "write nodes in a script's own models",
    ),
    PrivateAttribute(
        "ray",
        "ray._private",
        "worker",
        "print_to_stdstream",
        "log messages that Ray prints on the console",
    ),
    PrivateAttribute(
        "ray",
        "ray._private",
        "utils",
        "get_entrypoint_name",
        "keep the command line, which may hold a database's password, out of Ray's metadata",
    ),
    PrivateAttribute(
        "time-machine",
        "time_machine",
        "Traveller",
        "time_ns",
        "set the clock of eval scripts (--as_of)",
    ),
)


@cache
def check_private_attributes(*packages: str) -> None:
    """Check that the installed versions of these packages have the private attributes that we use.

    Raises:
        MachineError: one is missing; the text names the package, its version and the versions to
            install.
    """
    for each in PRIVATE_ATTRIBUTES:
        if each.package in packages and not _is_there(each):
            raise MachineError(
                f"{each.package} {version(each.package)} lacks {each.kind}.{each.attribute}, which "
                "mind2web2 "
                f"needs to {each.purpose}: install {REQUIREMENTS[each.package]}"
            )


def owner_of(attribute: PrivateAttribute) -> Any:
    """Return the class or module that has an attribute.

    Raises ImportError, AttributeError: it is not there.
    """
    with suppress(ModuleNotFoundError):
        import_module(f"{attribute.module}.{attribute.kind}")
    return getattr(import_module(attribute.module), attribute.kind)


def _is_there(attribute: PrivateAttribute) -> bool:
    try:
        kind = owner_of(attribute)
    except (ImportError, AttributeError):
        return False
    setup = getattr(kind.__init__, "__code__", None)
    return hasattr(kind, attribute.attribute) or (
        setup is not None and attribute.attribute in setup.co_names
    )
