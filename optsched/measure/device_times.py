"""Seconds of training steps on one device: alone, in pairs of processes, and with batches split into sub-batches.

The file needs Python and PyTorch, and nothing of optsched: copy it to a machine with a GPU and run it there
(``python device_times.py sharing -o sharing.csv``). ``optsched measure`` runs the same code. Without PyTorch only the
workload ``arithmetic`` runs, which keeps a processor busy.

**Method.** Two worker processes stay alive, so that PyTorch is imported only twice. Each loads a model with random
weights and synthetic data. Steps are timed in chunks of about a fortieth of the window, and a synchronisation of the
device ends each chunk. The window opens after a warm-up and closes while both processes still work. The result is the
median of the chunks inside the window, with their quartiles. The processes share the device as its driver does: in
time slices, or through NVIDIA MPS if its control daemon runs.

**Rows** of the CSV: see `FIELDS`. A row is written as soon as it is measured; the same command continues a file.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIELDS = (
    "model",  # the workload
    "beside",  # its partner on the device; empty: alone
    "group",  # the name of the measurement
    "gpus",  # always 1
    "batch",  # samples of a step
    "steps",  # sub-steps of gradient accumulation of a step
    "beside_batch",  # those two of the partner
    "beside_steps",
    "seconds",  # of a step: median over the chunks; empty if it did not run
    "low",  # first quartile
    "high",  # third quartile
    "memory",  # bytes that the process reserved on the GPU; empty on a CPU
    "problem",  # "memory": it did not fit; else empty
    "repetition",
    "window",  # seconds of the measurement
    "sharing",  # time slices, MPS, or processor cores
    "device",
    "versions",
)
SIZES = {"small": 0, "full": 1}
CHUNKS = 40  # in a window
WARM_UP, TAIL = 0.4, 0.25  # shares of the window before and after it in which both processes work, too
LEAST_STEPS = 4  # steps in a window; a longer step has a longer window
OUT_OF_MEMORY = "memory"

Step = Callable[[], None]
Advance = Callable[[int, int, str], None]


class Refused(Exception):
    """A measurement that cannot be done; the message is one line."""


# --- workloads: name -> (samples of a batch, small and full; builder of a step) --------------------------------------------


def _trainer(torch: Any, device: str, net: Any, loss: Callable[..., Any], data: Sequence[Any], parts: int) -> Step:
    """Return one training step: ``parts`` sub-batches, gradients accumulated, one update; mixed precision on a GPU."""
    net = net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    pieces = list(zip(*(tensor.to(device).chunk(parts) for tensor in data), strict=True))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for piece in pieces:
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device != "cpu"):
                value = loss(net, *piece)
            (value.float() / parts).backward()
        optimizer.step()

    return step


def _convolutional(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    nn, width, depth, pixels = torch.nn, (16, 64)[size], (2, 8)[size], (32, 128)[size]

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            layers = [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)]
            again = [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)]
            self.body = nn.Sequential(*layers, nn.ReLU(), *again)

        def forward(self, x: Any) -> Any:
            return torch.relu(x + self.body(x))

    stem, head = nn.Conv2d(3, width, 7, stride=2, padding=3), nn.Linear(width, 100)
    net = nn.Sequential(stem, *(Block() for _ in range(depth)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
    data = torch.randn(batch, 3, pixels, pixels), torch.randint(100, (batch,))
    return _trainer(torch, device, net, lambda net, x, y: nn.functional.cross_entropy(net(x), y), data, parts)


def _transformer(causal: bool) -> Callable[..., Step]:
    def build(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
        nn, width, depth, length, words = torch.nn, (64, 768)[size], (2, 8)[size], (32, 256)[size], (500, 30_000)[size]

        class Net(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                layer = nn.TransformerEncoderLayer(width, width // 16, 4 * width, batch_first=True, norm_first=True)
                self.words, self.last = nn.Embedding(words, width), nn.Linear(width, words)
                self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
                self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

            def forward(self, x: Any) -> Any:
                hidden = self.words(x)
                hidden = self.body(hidden, mask=self.mask, is_causal=True) if causal else self.body(hidden)
                return self.last(hidden)

        def loss(net: Any, x: Any, y: Any) -> Any:
            return nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())

        text = torch.randint(words, (batch, length + 1))
        target = text[:, 1:] if causal else text[:, :-1]  # a decoder predicts the next word, an encoder the word itself
        return _trainer(torch, device, Net(), loss, (text[:, :-1], target), parts)

    return build


def _recurrent(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    nn, width, length = torch.nn, (64, 1024)[size], (20, 100)[size]

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.LSTM(width, width, 2, batch_first=True), nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x)[0][:, -1])

    data = torch.randn(batch, length, width), torch.randint(10, (batch,))
    return _trainer(torch, device, Net(), lambda net, x, y: nn.functional.cross_entropy(net(x), y), data, parts)


def _recommendation(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    nn, tables, rows, width, hidden = torch.nn, (4, 26)[size], (1_000, 200_000)[size], (16, 64)[size], (64, 512)[size]

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(tables * rows, width)
            layers = [nn.Linear(tables * width + 13, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]
            self.top = nn.Sequential(*layers, nn.Linear(hidden, 1))

        def forward(self, which: Any, dense: Any) -> Any:
            return self.top(torch.cat([self.words(which).flatten(1), dense], 1)).squeeze(1)

    def loss(net: Any, which: Any, dense: Any, click: Any) -> Any:
        return nn.functional.binary_cross_entropy_with_logits(net(which, dense).float(), click)

    which = torch.randint(rows, (batch, tables)) + torch.arange(tables) * rows
    data = which, torch.randn(batch, 13), torch.randint(2, (batch,)).float()
    return _trainer(torch, device, Net(), loss, data, parts)


def _graph(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    nn, nodes, degree, width = torch.nn, (500, 50_000)[size], 10, (32, 128)[size]
    ends = torch.randint(nodes, (2, degree * nodes))
    links = torch.sparse_coo_tensor(
        ends, torch.full((degree * nodes,), 1 / degree), (nodes, nodes), check_invariants=False
    ).coalesce()
    links, features = links.to(device), torch.randn(nodes, width).to(device)

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

        def forward(self, labelled: Any) -> Any:
            hidden = features
            for layer in self.layers:
                with torch.autocast(device, enabled=False):  # sparse products have single precision only
                    hidden = torch.sparse.mm(links, hidden.float())
                hidden = torch.relu(layer(hidden))
            return hidden[labelled]

    data = torch.randint(nodes, (batch,)), torch.randint(width, (batch,))
    return _trainer(torch, device, Net(), lambda net, x, y: nn.functional.cross_entropy(net(x), y), data, parts)


def _arithmetic(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    """Return a step of additions in Python; ``torch`` and ``device`` are not used."""
    turns = (2_000, 20_000)[size] * batch // parts

    def step() -> None:
        for _ in range(parts):
            sum(range(turns + 500))

    return step


WORKLOADS: dict[str, tuple[tuple[int, int], Callable[..., Step]]] = {
    "convolutional": ((16, 128), _convolutional),
    "transformer-encoder": ((16, 64), _transformer(causal=False)),
    "transformer-decoder": ((16, 32), _transformer(causal=True)),
    "recurrent": ((16, 128), _recurrent),
    "recommendation": ((64, 8192), _recommendation),
    "graph": ((64, 1024), _graph),
    "arithmetic": ((8, 8), _arithmetic),
}
WITHOUT_TORCH = ("arithmetic",)


# --- one worker process ----------------------------------------------------------------------------------------------------


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise Refused(
            "PyTorch is missing (expected: pip install 'optsched[measure]', or --models arithmetic)"
        ) from None
    return torch


def _work() -> None:
    """Obey one JSON command a line of stdin: load a workload, or run it; answer each by a JSON line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    answers, sys.stdout = sys.stdout, sys.stderr
    step: Step | None = None
    torch: Any = None
    for line in sys.stdin:
        asked, answer = json.loads(line), {}
        cuda = asked["device"] != "cpu"
        try:
            if asked["do"] == "load":
                step, torch = None, None if asked["model"] in WITHOUT_TORCH else _import_torch()
                if torch is not None:
                    torch.manual_seed(1)
                if cuda:
                    torch.cuda.empty_cache()
                    torch.cuda.reset_peak_memory_stats()
                build = WORKLOADS[asked["model"]][1]
                step = build(torch, asked["device"], asked["size"], asked["batch"], asked["steps"])
                step()
                answer["step"] = max(
                    end - begin for begin, end, _ in _chunks(step, torch, cuda, time.perf_counter(), 0)
                )
            else:
                assert step is not None
                answer["chunks"] = _chunks(step, torch, cuda, asked["until"], asked["window"])
            if cuda:
                answer["memory"] = torch.cuda.max_memory_reserved()
        except Exception as error:
            step = None
            crowded = isinstance(error, MemoryError) or "out of memory" in str(error).lower()
            answer["failed"] = OUT_OF_MEMORY if crowded else (str(error).splitlines() or [type(error).__name__])[0]
        print(json.dumps(answer), file=answers, flush=True)


def _chunks(step: Step, torch: Any, cuda: bool, until: float, window: float) -> list[tuple[float, float, int]]:
    """Return (begin, end, steps) of chunks of steps, on the machine's clock, until a time; at least one."""
    chunks, many, end = [], 1, -math.inf
    while end < until:
        begin = time.perf_counter()
        for _ in range(many):
            step()
        if cuda:
            torch.cuda.synchronize()
        end = time.perf_counter()
        chunks.append((begin, end, many))
        many = max(1, round(many * min(window / CHUNKS / max(end - begin, 1e-9), 2.0)))
    return chunks


# --- the process that measures ---------------------------------------------------------------------------------------------


class _Worker:
    """A process that loads one workload at a time and runs it for given times."""

    def __init__(self) -> None:
        command = [sys.executable, os.path.abspath(__file__), "--worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, **asked: Any) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `answer` reports it
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found: dict[str, Any] = json.loads(line) if line else {"failed": "a process that measures was killed"}
        if found.get("failed", OUT_OF_MEMORY) != OUT_OF_MEMORY:
            raise Refused(found["failed"])
        return found


@contextlib.contextmanager
def _workers(count: int) -> Iterator[list[_Worker]]:
    workers = [_Worker() for _ in range(count)]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()


@dataclass(frozen=True)
class Load:
    """A workload with a batch that is split into ``steps`` sub-batches."""

    model: str
    batch: int
    steps: int = 1


@dataclass(frozen=True)
class Plan:
    """Groups of one or two loads that run at once, in the order of measurement; each is measured ``repetitions`` times."""

    groups: tuple[tuple[Load, ...], ...]
    size: str
    device: str
    seconds: float = 2.0
    repetitions: int = 3


def sharing(models: Sequence[str], size: str, split: Sequence[int] = (1,)) -> tuple[tuple[Load, ...], ...]:
    """Return groups for a `Plan`: every model alone, then every pair, a model with itself included.

    Parameters
    ----------
    models
        Names of workloads.
    size
        ``small`` or ``full``.
    split
        Numbers of sub-batches with which each model is measured.
    """
    loads = [Load(name, WORKLOADS[name][0][SIZES[size]], steps) for name in models for steps in split]
    return (*((a,) for a in loads), *((a, b) for k, a in enumerate(loads) for b in loads[k:]))


def batches(models: Sequence[str], size: str, split: Sequence[int] = (1, 2, 4, 8)) -> tuple[tuple[Load, ...], ...]:
    """Return groups for a `Plan`: every model with its batch and with half of it, whole and in sub-batches.

    Parameters
    ----------
    models
        Names of workloads.
    size
        ``small`` or ``full``.
    split
        Numbers of sub-batches; those that do not divide a batch are left out.
    """
    whole = [(name, WORKLOADS[name][0][SIZES[size]] // part) for name in models for part in (1, 2)]
    return tuple((Load(name, batch, steps),) for name, batch in whole for steps in split if batch % steps == 0)


def measure(plan: Plan, path: str | os.PathLike[str], advance: Advance = lambda done, total, text: None) -> int:
    """Measure what a file does not hold yet, append a row for each load, and return the number of groups measured.

    Parameters
    ----------
    plan
        What to measure, where, and for how long.
    path
        CSV file; it is made, or continued.
    advance
        Called with (groups done, groups in all, name of the group) before each group and at the end.

    Raises
    ------
    Refused
        The device or PyTorch is missing, the file is of another campaign, or a workload fails.
    """
    about = _machine(plan)
    done = _groups_in(path, about)
    every = [(turn, group) for turn in range(1, plan.repetitions + 1) for group in plan.groups]
    left = [(turn, group) for turn, group in every if (str(turn), _name(group)) not in done]
    with _workers(max((len(group) for _, group in left), default=0)) as workers:
        for number, (turn, group) in enumerate(left, len(every) - len(left)):
            advance(number, len(every), _name(group))
            _append(path, [row | about | {"repetition": turn} for row in _measured(workers, group, plan)])
    advance(len(every), len(every), "")
    return len(left)


def _name(group: Sequence[Load]) -> str:
    return " + ".join(f"{load.model}/{load.steps}" if load.steps > 1 else load.model for load in group) + (
        f" ({group[0].batch})" if len(group) == 1 else ""
    )


def _measured(workers: list[_Worker], group: Sequence[Load], plan: Plan) -> list[dict[str, Any]]:
    """Return a row for each load of a group that runs at once."""
    used, answers, size = workers[: len(group)], [], SIZES[plan.size]
    common = {"device": plan.device}
    for worker, load in zip(used, group, strict=True):  # one after the other: what does not fit fails alone
        worker.send(do="load", model=load.model, batch=load.batch, steps=load.steps, size=size, **common)
        answers.append(worker.answer())
    opens = closes = 0.0
    if not any("failed" in answer for answer in answers):
        window = max(plan.seconds, LEAST_STEPS * max(answer["step"] for answer in answers))
        opens = time.perf_counter() + WARM_UP * window
        closes = opens + window
        for worker in used:
            worker.send(do="run", until=closes + TAIL * window, window=window, **common)
        answers = [worker.answer() for worker in used]
    failed, rows = any("failed" in answer for answer in answers), []
    for k, (load, answer) in enumerate(zip(group, answers, strict=True)):
        partner = group[1 - k] if len(group) == 2 else Load("", 0, 0)
        row: dict[str, Any] = {"model": load.model, "beside": partner.model, "group": _name(group), "gpus": 1}
        row |= {"batch": load.batch, "steps": load.steps}
        row |= {"beside_batch": partner.batch or "", "beside_steps": partner.steps or ""}
        row |= {"memory": answer.get("memory", ""), "problem": OUT_OF_MEMORY if failed else ""}
        rows.append(row if failed else row | _quartiles(answer["chunks"], opens, closes))
    return rows


def _quartiles(chunks: Sequence[tuple[float, float, int]], opens: float, closes: float) -> dict[str, str]:
    """Return the median seconds of a step and its quartiles over the chunks in a window, or over those that touch it."""
    times = [(end - begin) / steps for begin, end, steps in chunks if begin >= opens and end <= closes]
    if len(times) < 2:
        times = [(end - begin) / steps for begin, end, steps in chunks if end >= opens and begin <= closes]
    low, median, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    return {"seconds": f"{median:.6g}", "low": f"{low:.6g}", "high": f"{high:.6g}"}


def _machine(plan: Plan) -> dict[str, str]:
    """Return the columns that are the same in all rows of a campaign; raise `Refused` if PyTorch or the GPU is missing."""
    about = {
        "device": f"{platform.machine()}, {os.cpu_count()} cores",
        "sharing": "cores",
        "window": f"{plan.seconds:g}",
    }
    versions = [f"size {plan.size}", f"python {platform.python_version()}"]
    if plan.device != "cpu" or any(load.model not in WITHOUT_TORCH for group in plan.groups for load in group):
        torch = _import_torch()
        versions.append(f"torch {torch.__version__}")
        if plan.device != "cpu":
            if not torch.cuda.is_available():
                raise Refused("PyTorch finds no GPU (expected: a GPU with its driver, or --device cpu)")
            folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
            about["device"] = torch.cuda.get_device_name()
            about["sharing"] = "MPS" if (folder / "control").exists() else "time slices"
            versions += [f"cuda {torch.version.cuda}", f"driver {_driver()}"]
    return {**about, "versions": "; ".join(versions)}


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.SubprocessError, IndexError):
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()[0]
    return "unknown"


def defaults(device: str | None, models: Sequence[str] | None) -> tuple[str, str, list[str]]:
    """Return the device, the size of the workloads and their names, chosen where they are not given.

    Parameters
    ----------
    device
        ``cpu`` or ``cuda``; None: ``cuda`` if PyTorch finds a GPU.
    models
        Names of workloads; None: all that train a network.
    """
    names = list(models or [name for name in WORKLOADS if name not in WITHOUT_TORCH])
    if device is None:
        device = "cpu"
        with contextlib.suppress(Refused):
            device = "cuda" if _import_torch().cuda.is_available() else "cpu"
    return device, "small" if device == "cpu" else "full", names


# --- the file --------------------------------------------------------------------------------------------------------------


def _groups_in(path: str | os.PathLike[str], about: dict[str, str]) -> set[tuple[str, str]]:
    """Return (repetition, name) of the groups that a file holds whole; cut off rows that were not written whole."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return set()
    text = content[: content.rfind(b"\n") + 1].decode("utf-8", "replace")
    head, *rows = list(csv.reader(text.splitlines())) or [list(FIELDS)]
    if tuple(head) != FIELDS or (content and not text):
        raise Refused(f"{path}: row 1: no measurements of this command (expected: another file with -o)")
    found: dict[tuple[str, str], int] = {}
    for number, cells in enumerate(rows, 2):
        row = dict(zip(FIELDS, cells, strict=False))
        for field, value in about.items():
            if row.get(field) != value:
                message = f"{path}: row {number}: {field} = {row.get(field)!r}"
                raise Refused(f"{message} (expected: {value!r}, as now; or another file with -o)")
        key = row["repetition"], row["group"]
        found[key] = found.get(key, 0) + (1 if row["beside"] else 2)
    if rows and found[key] < 2:  # the first row of a pair alone
        rows, text = rows[:-1], "".join(text.splitlines(keepends=True)[:-1])
        del found[key]
    if len(text.encode()) < len(content):
        Path(path).write_text(text, encoding="utf-8", newline="")
    return set(found)


def _append(path: str | os.PathLike[str], rows: Sequence[dict[str, Any]]) -> None:
    fresh = not os.path.exists(path) or not os.path.getsize(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerows(rows)


# --- without optsched ------------------------------------------------------------------------------------------------------


def _alone() -> int:
    """Run the command line of this file alone, and return the exit status."""
    parser = argparse.ArgumentParser(description="Measure pairs of training jobs on one device, or split batches.")
    parser.add_argument("what", choices=("sharing", "batches"))
    parser.add_argument("--models", nargs="+", choices=list(WORKLOADS))
    parser.add_argument("--split", nargs="+", type=int)
    parser.add_argument("--seconds", type=float, default=2.0, help="window of a measurement; default: 2")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("-o", "--output")
    asked = parser.parse_args()
    path, begin = asked.output or f"{asked.what}.csv", time.monotonic()
    device, size, names = defaults(asked.device, asked.models)
    chosen = (names, size, asked.split) if asked.split else (names, size)
    plan = Plan(
        (sharing if asked.what == "sharing" else batches)(*chosen), size, device, asked.seconds, asked.repetitions
    )

    def advance(done: int, total: int, text: str) -> None:
        print(f"{done} of {total} after {time.monotonic() - begin:.0f} s {text}", file=sys.stderr)

    try:
        measure(plan, path, advance)
    except Refused as refused:
        print(f"device_times: {refused}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"device_times: interrupted; {path} keeps what was measured, the same command continues", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(_work() if sys.argv[1:] == ["--worker"] else _alone())
