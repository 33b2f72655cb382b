"""``python -m optsched``."""

from optsched.cli import main

main()
