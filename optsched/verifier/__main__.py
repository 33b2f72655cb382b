"""The command ``python -m verifier CERTIFICATE INSTANCE``: judge two JSON files and print one line.

Exit code 0: the bound holds; 1: it does not; 2: it cannot be judged here.
"""

from __future__ import annotations

import sys

from .judgement import verify_files
from .refusal import UNJUDGED, Refused, need


def main(arguments: list[str]) -> int:
    """Print what is proved, or the reason of the refusal, and return the exit code.

    Parameters
    ----------
    arguments
        Paths of the certificate and of the instance.
    """
    try:
        usage = f"usage: python -m {__package__} CERTIFICATE INSTANCE (two JSON files)"
        need(len(arguments) == 2, usage, UNJUDGED)
        print("holds:", verify_files(*arguments))
    except Refused as refused:
        unjudged = refused.rule == UNJUDGED
        print("cannot be judged:" if unjudged else "does not hold:", refused, file=sys.stderr)
        return 2 if unjudged else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
