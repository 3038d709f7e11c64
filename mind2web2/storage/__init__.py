"""Roots in object stores (``s3://``, ``gs://``, ``az://``): requests, working copies, publication."""
