"""Make `python -m consmarl.cli` the same as `consmarl`."""

import sys

from consmarl.cli import main

sys.exit(main())
