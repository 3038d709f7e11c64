"""Eval scripts: load, rewrite and run them."""
