"""Puts the example project into the wheel, for ``mind2web2 example``.

A clone has it in its places.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = (
    "answers/example",
    "cache/example",
    "eval_scripts/example",
    "examples/judgments.jsonl",
)


class ExampleProject(BuildHookInterface):
    """Adds the parts of the example to wheels that hold the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them; an editable wheel holds no package, only the way to it."""
        if version != "editable":
            build_data["force_include"].update(
                {part: f"mind2web2/example_project/{part}" for part in PARTS}
            )
