"""A labelled set that is put to a judge before a run is paid for.

The judge's quality is measured by its replies.
"""
