# What a change has to pass, and the long form of the fault suite. RUN= uses the environment that is active.
RUN ?= uv run
FAULTS ?=

.PHONY: check faults test

test:
	$(RUN) pytest

check:
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) pytest

# For example: make faults FAULTS="--schedules 20 --seed 7"
faults:
	PYTHONPATH=tests $(RUN) python -m faults.report $(FAULTS)
