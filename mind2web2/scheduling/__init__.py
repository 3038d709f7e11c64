"""Deferred verifications: pending verdicts, the sequential guard, execution options."""
