"""Eval scripts in processes of their own.

A script may break, hang or run wild without touching the run.
"""
