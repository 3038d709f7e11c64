# What a change has to pass, and the long form of the fault suite. RUN= uses the environment that is active.
RUN ?= uv run
FAULTS ?=

.PHONY: check coverage faults test

test:
	$(RUN) pytest

check:
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) pytest

# Lines that the tests reach, in the processes that they start as well.
coverage:
	$(RUN) coverage erase
	$(RUN) coverage run -m pytest
	$(RUN) coverage combine -q
	$(RUN) coverage report --skip-covered --sort=cover --fail-under=90

# For example: make faults FAULTS="--schedules 20 --seed 7"
faults:
	PYTHONPATH=tests $(RUN) python -m faults.report $(FAULTS)
