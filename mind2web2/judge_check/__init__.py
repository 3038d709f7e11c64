"""A labelled set that is put to a judge before a run is paid for, and the judge's quality by its replies."""
