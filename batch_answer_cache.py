"""Cache the pages that an agent's answers to one task cite.

The same as ``mind2web2 cache --task_id``.
"""

import sys

from mind2web2.cli import batch_cache_main

if __name__ == "__main__":
    sys.exit(batch_cache_main())
