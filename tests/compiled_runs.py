"""Compare compiled and interpreted runs of every policy on random instances of every kind, bit for bit.

``python -m compiled_runs [--runs N] [--first SEED]`` (with tests/ on the path) runs the program once in each way and prints
the differences, and exits with 1 if there is one. The instances are those of `invariance.examples`, and requests for the
policies of the class ``kv-cache``. A run counts if the policy takes the instance; every fourth run takes another placement.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import subprocess
import sys
from collections.abc import Iterator

from frozen.runs import REFUSED, VARIANTS, digest_of_run
from invariance.examples import examples
from kv_cache.every_start import random_requests

from optsched import Instance
from optsched.compiled import function as compiled
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS

WAYS = ("interpreted", "compiled")


def instances(seed: int) -> Iterator[tuple[str, Instance]]:
    """A random instance of every kind."""
    yield from examples(seed).items()
    yield "requests", random_requests(seed, 30)


def lines(runs: int, first: int) -> Iterator[str]:
    """A line for each of the first runs: seed, kind, policy, digest of the schedule."""
    specifications, placements, seed, count, tried = [*POLICIES.names(), *VARIANTS], PLACEMENTS.names(), first, 0, 0
    while True:
        for kind, instance in instances(seed):
            for policy in specifications:
                tried += 1
                placed = policy + (f"+{placements[tried // 4 % len(placements)]}" if tried % 4 == 0 else "")
                digest = digest_of_run(instance, placed)
                if digest == REFUSED:
                    continue
                yield f"{seed} {kind} {placed} {digest}"
                count += 1
                if count == runs:
                    return
        seed += 1


def run(way: str, runs: int, first: int) -> None:
    """Print the lines of runs in one of the `WAYS`."""
    if way == "interpreted":
        compiled.PRICE = compiled.FIRST_LOAD = compiled.LOAD = compiled.CERTAIN = math.inf
    with compiled.without_interpreting() if way == "compiled" else contextlib.nullcontext():
        for line in lines(runs, first):
            print(line, flush=True)


def compare(runs: int, first: int) -> list[str]:
    """Run in both ways, and return the differences."""
    said = {}
    for way in WAYS:
        command = [sys.executable, "-W", "ignore", "-m", "compiled_runs", "--runs", str(runs), "--first", str(first)]
        done = subprocess.run([*command, "--way", way], stdout=subprocess.PIPE, text=True, check=True)
        said[way] = done.stdout.splitlines()
    assert len(said["compiled"]) == runs
    return [f"{one} | {two}" for one, two in zip(*said.values(), strict=True) if one != two]


def main() -> None:
    """Compare, or run in one way."""
    parser = argparse.ArgumentParser(
        prog="python -m compiled_runs", description="compiled and interpreted, bit for bit"
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--way", choices=WAYS, help="run in this way alone")
    given = parser.parse_args()
    if given.way:
        run(given.way, given.runs, given.first)
        return
    differences = compare(given.runs, given.first)
    print(*differences, f"{given.runs:,} runs, {len(differences)} differences", sep="\n")
    raise SystemExit(bool(differences))


if __name__ == "__main__":
    main()
