#!/usr/bin/env bash
# Polars: sums and means of floats by group depend on the threads that share the work.
#
# library    polars 2.1.0, two threads or more
# behaviour  `group_by(..., maintain_order=True).agg(mean)` adds up the parts of a group in the order in which threads take
#            them: the last digit depends on their number, and on a busy machine changes from call to call.
# seen       the means of 14 groups with 1 and with 2 threads differ
# exit       0: as above; 1: they are now equal
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check polars==2.1.0
cat > "$folder/means.py" <<'PYTHON'
import random

import polars as pl

draw = random.Random(0)
names = [f"u{draw.randrange(14)}" for _ in range(60_000)]
table = pl.DataFrame({"name": names, "x": [draw.expovariate(1) for _ in names]})
print(table.group_by("name", maintain_order=True).agg(pl.col("x").mean())["x"].to_list())
PYTHON
one=$(POLARS_MAX_THREADS=1 "$folder/env/bin/python" "$folder/means.py")
two=$(POLARS_MAX_THREADS=2 "$folder/env/bin/python" "$folder/means.py")
if [ "$one" = "$two" ]; then
  echo "the means of 14 groups with 1 and with 2 threads are equal"
  exit 1
fi
echo "the means of 14 groups with 1 and with 2 threads differ"
