"""``make study-pages``: measures again what the pages of the studies show, in the size and on the seeds of their records.

With names of studies, only these. To have a page of another size, run `optsched reproduce NAME ... -o DIR` and take
DIR/record.json for docs/measured/NAME.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

MEASURED = Path(__file__).resolve().parent / "measured"


def main() -> None:
    """Run every study again whose record is there."""
    from optsched.studies.record import write_record
    from optsched.studies.study_file import Study

    for file in sorted(MEASURED.glob("*.json")):
        if sys.argv[1:] and file.stem not in sys.argv[1:]:
            continue
        given = json.loads(file.read_text(encoding="utf-8"))
        if not given["trace"]:
            os.environ["OPTSCHED_DATA"] = ""  # workloads that anybody can make
        small = given["size"] == "small"
        done = Study.named(file.stem).run(given["seeds"], small=small)
        write_record(done, given["seeds"], file)
        print(f"{file.name}: {len(done.outcomes)} experiments, size {given['size']}", flush=True)


if __name__ == "__main__":
    main()
