"""Families of models, by their names: a judge may favour texts of its own family."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from mind2web2.results.answers import read_run_record

_FAMILIES = {
    "OpenAI": r"gpt|chatgpt|codex|o[134](?![a-z])|davinci|openai",
    "Anthropic": r"claude|anthropic",
    "Google": r"gemini|gemma|palm",
    "Meta": r"llama",
    "Alibaba": r"qwen|qwq",
    "Mistral": r"mistral|mixtral|ministral|magistral|codestral|pixtral",
    "DeepSeek": r"deepseek",
    "xAI": r"grok",
    "Cohere": r"command-[ar]|cohere",
    "Microsoft": r"phi-?\d",
    "Moonshot": r"kimi|moonshot",
    "Zhipu": r"glm|chatglm",
}
_PATTERNS = {
    family: re.compile(rf"(?<![a-z0-9])(?:{names})", re.IGNORECASE)
    for family, names in _FAMILIES.items()
}
# The runs of one agent are of one model, so that few records tell it.
_MAX_RECORDS = 20


def family_of(model: str) -> str | None:
    """Return who makes a model, by its name; ``None`` if the name does not tell."""
    for family, pattern in _PATTERNS.items():
        if pattern.search(model):
            return family
    return None


def own_family_caution(agent_answers: Path, judges: Collection[str]) -> str | None:
    """Return a caution if a judge is the agent's own model, or of the same family.

    Args:
        agent_answers: the folder of the agent's answers, with the records of its runs.
    """
    paths = sorted(islice(agent_answers.glob("*/answer_*.run.json"), _MAX_RECORDS))
    records = [read_run_record(path) for path in paths]
    models = sorted({each.agent for each in records if each is not None and each.agent})
    for model in models:
        for judge in sorted(judges):
            if judge.casefold() in model.casefold():
                return f"the judge {judge} judges answers of its own model ({model})"
            if (family := family_of(judge)) is not None and family == family_of(model):
                return (
                    f"the judge {judge} and the agent's model {model} are of one family ({family})"
                )
    return None
