"""Judging by the providers' batch endpoints."""
