"""Eval scripts in processes of their own, which may break, hang or run wild without touching the run."""
