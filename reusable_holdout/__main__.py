"""``python -m reusable_holdout``: the command line."""

import sys

from reusable_holdout.cli import main

sys.exit(main())
