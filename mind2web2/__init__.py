"""Find out whether an AI search agent's cited answers are true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind2web2.utils import late_names

if TYPE_CHECKING:
    from mind2web2.api_tools import ArxivTool, GoogleMapsTool, PDFParser
    from mind2web2.bridges.tables import load_results
    from mind2web2.evaluator import Evaluator
    from mind2web2.llm_client import LLMClient, calculate_api_cost
    from mind2web2.pages.cache import CacheFileSys
    from mind2web2.rubric.node import AggregationStrategy, VerificationNode
    from mind2web2.scoring.scorer import Judge, NoScore, Score, Scorer
    from mind2web2.scripts.load import load_eval_script
    from mind2web2.verification.extractor import (
        EvaluatorConfig,
        Extractor,
        Verifier,
        create_evaluator,
    )

__version__ = "1.0.0rc1"

# Eval scripts (eval-scripts.md) and trainers (in-process.md) import these names from here. Each is
# loaded when first asked for, so that commands which need little start quickly.
_HOMES = {
    "AggregationStrategy": "mind2web2.rubric.node",
    "ArxivTool": "mind2web2.api_tools",
    "CacheFileSys": "mind2web2.pages.cache",
    "Evaluator": "mind2web2.evaluator",
    "EvaluatorConfig": "mind2web2.verification.extractor",
    "Extractor": "mind2web2.verification.extractor",
    "GoogleMapsTool": "mind2web2.api_tools",
    "Judge": "mind2web2.scoring.scorer",
    "LLMClient": "mind2web2.llm_client",
    "NoScore": "mind2web2.scoring.scorer",
    "PDFParser": "mind2web2.api_tools",
    "Score": "mind2web2.scoring.scorer",
    "Scorer": "mind2web2.scoring.scorer",
    "VerificationNode": "mind2web2.rubric.node",
    "Verifier": "mind2web2.verification.extractor",
    "calculate_api_cost": "mind2web2.llm_client",
    "create_evaluator": "mind2web2.verification.extractor",
    "load_eval_script": "mind2web2.scripts.load",
    "load_results": "mind2web2.bridges.tables",
}

__all__ = [
    "AggregationStrategy",
    "ArxivTool",
    "CacheFileSys",
    "Evaluator",
    "EvaluatorConfig",
    "Extractor",
    "GoogleMapsTool",
    "Judge",
    "LLMClient",
    "NoScore",
    "PDFParser",
    "Score",
    "Scorer",
    "VerificationNode",
    "Verifier",
    "calculate_api_cost",
    "create_evaluator",
    "load_eval_script",
    "load_results",
]

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
