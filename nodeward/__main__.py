"""`python -m nodeward` is `nodeward`."""

import sys

from nodeward.cli.main import main

sys.exit(main())
