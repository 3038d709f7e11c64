"""A plugin with a judge that looks for a claim's words, and an export."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import mind2web2
from mind2web2.llm_client.chat import Completion
from mind2web2.llm_client.providers import Provider
from mind2web2.llm_client.settings import Service
from mind2web2.llm_client.transport import (
    OutputMode,
    WireRequest,
)

BLOCK = re.compile(r"<<([a-z ]+) (\w+)>>\n(.*?)\n<<end of \1 \2>>", re.DOTALL)


class RulesTransport:
    """Answers a question from its own text; a transport to a server would send it."""

    service = Service("rules local", "no key", "no address")
    modes: Sequence[OutputMode] = (OutputMode.JSON,)

    async def send(self, wire: WireRequest) -> Completion:
        """Return the reply to one question."""
        asked = json.dumps(wire.messages).encode().decode("unicode_escape")
        blocks = {name: text for name, _, text in BLOCK.findall(asked)}
        if "claim" not in blocks:
            return Completion("{}")  # this judge extracts nothing
        source = blocks.get("page", blocks.get("answer", "")).lower()
        words = re.findall(r"\w{4,}", blocks["claim"].lower())
        missing = [word for word in words if word not in source]
        reason = f"missing: {', '.join(missing)}" if missing else "all words are there"
        reply = {"reasoning": reason, "result": not missing, "quote": ""}
        return Completion(json.dumps(reply))

    async def models(self) -> list[str]:
        """Return the models of the server, if it lists them."""
        return []

    async def close(self) -> None:
        """Close connections."""


PROVIDER = Provider(
    connect=lambda base_url, api_key: RulesTransport(),  # noqa: ARG005
    endpoint=lambda base_url: RulesTransport.service.endpoint,  # noqa: ARG005
)


class MarkdownExport:
    """``mind2web2 export AGENT --markdown FILE``."""

    help = "write a list of verdicts in markdown"

    def write(self, output: Path, agents: Sequence[str], results_root: Path) -> str:
        """Write the list and return the line that says so."""
        leaves = [
            leaf for name in agents for leaf in mind2web2.load_results(name, results_root).leaves
        ]
        lines = [f"- {leaf.verdict}: {leaf.path}\n" for leaf in leaves]
        output.write_text("".join(lines), encoding="utf-8")
        return f"{len(leaves)} verdicts written to {output}"


EXPORT = MarkdownExport()
