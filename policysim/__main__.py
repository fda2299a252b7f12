"""`python -m policysim`."""

import sys

from policysim.cli import main

sys.exit(main())
