"""Extractor and verifier, under the names that eval scripts import."""

from mind2web2.llm_client.base_client import LLMClient
from mind2web2.verification.claims import BinaryEvalResult
from mind2web2.verification.config import EvaluatorConfig
from mind2web2.verification.extractor import Extractor, create_evaluator
from mind2web2.verification.verifier import Verifier

__all__ = ["BinaryEvalResult", "EvaluatorConfig", "Extractor", "LLMClient", "Verifier", "create_evaluator"]
