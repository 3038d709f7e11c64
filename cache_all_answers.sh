#!/bin/sh
# Cache the pages that an agent's answers cite, or every agent's; the same as `mind2web2 cache AGENT`.
# Run by $PYTHON, else by the checkout's own environment, else by the python that is active.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd) || exit 2
if [ -z "$PYTHON" ] && [ -z "$VIRTUAL_ENV" ] && [ -x "$here/.venv/bin/python" ]; then
    PYTHON="$here/.venv/bin/python"
fi
PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python}" -c \
    'import sys; from mind2web2.cli import cache_all_main; sys.exit(cache_all_main())' "$@"
