"""``make study-pages``: measures the records of the studies again, with the same size and seeds.

Arguments select studies by name. For a page of another size, run `optsched reproduce NAME ... -o DIR` and copy
DIR/record.json to docs/measured/NAME.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

MEASURED = Path(__file__).resolve().parent / "measured"


def main() -> None:
    """Run every study again that has a record."""
    from optsched.studies.record import write_record
    from optsched.studies.study_file import Study

    for file in sorted(MEASURED.glob("*.json")):
        if sys.argv[1:] and file.stem not in sys.argv[1:]:
            continue
        given = json.loads(file.read_text(encoding="utf-8"))
        if not given["trace"]:
            os.environ["OPTSCHED_DATA"] = ""  # without the trace, workloads are generated
        small = given["size"] == "small"
        done = Study.named(file.stem).run(given["seeds"], small=small)
        write_record(done, given["seeds"], file)
        print(f"{file.name}: {len(done.outcomes)} experiments, size {given['size']}", flush=True)


if __name__ == "__main__":
    main()
