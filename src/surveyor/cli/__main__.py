"""Run the command line: `python -m surveyor.cli`."""

import sys

from surveyor.cli import main

sys.exit(main())
