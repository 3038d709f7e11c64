"""A labelled set that is put to a judge before a run is paid for, and what its replies say of the judge."""
