"""The loader of eval scripts, under its published name."""

from mind2web2.scripts.load import load_eval_script

__all__ = ["load_eval_script"]
