"""`python -m policysim`."""

import sys

from policysim.cli.main import main

sys.exit(main())
