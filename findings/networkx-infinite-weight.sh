#!/usr/bin/env bash
# networkx: one infinite weight makes `max_weight_matching` return the empty matching.
#
# library    networkx 3.6.1
# behaviour  An edge that must be in the matching looks like one with an infinite weight. No error is raised: the result is the
#            matching without edges, of weight 0, also if all other edges have finite weights.
# seen       finite weights: 2 edges
#            one infinite weight: 0 edges
# exit       0: as above; 1: such a weight is now used or refused
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check networkx==3.6.1
cd "$folder"
env/bin/python - <<'PYTHON'
import math
import sys

import networkx as nx

sizes = []
for weight in (10.0, math.inf):
    graph = nx.Graph()
    graph.add_weighted_edges_from([("job a", "gpu 1", 1.0), ("job b", "gpu 2", weight), ("job a", "gpu 2", 2.0)])
    sizes.append(len(nx.max_weight_matching(graph)))
    print(f"{'finite weights' if weight < math.inf else 'one infinite weight'}: {sizes[-1]} edges")
sys.exit(sizes != [2, 0])
PYTHON
