"""``python -m mind2web2``: the same as the ``mind2web2`` command."""

import sys

from mind2web2.cli import main

if __name__ == "__main__":
    sys.exit(main())
