"""`python -m consmarl.cli` is `consmarl`."""

import sys

from consmarl.cli import main

sys.exit(main())
