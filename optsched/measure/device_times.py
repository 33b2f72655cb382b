"""Seconds of training steps on one device: alone, in pairs of processes, and with batches split into sub-batches.

The file needs Python and PyTorch alone: copy it to a machine with a GPU, and run ``python device_times.py sharing``. It is
what ``optsched measure`` runs. Without PyTorch only ``arithmetic`` runs, which keeps a processor busy.

Two worker processes stay alive, so that PyTorch is imported only twice. Steps are timed in chunks of about a fortieth of
the window, and a synchronisation of the device ends each chunk. The window opens after a warm-up and closes while both
processes still work. The result is the median of its chunks, with quartiles. Processes share a GPU in time slices, or
through NVIDIA MPS if its control daemon runs. Rows are written at once; the same command continues a file.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# Workload; partner (empty: alone); name of the measurement; samples and sub-steps of a step; those of the partner;
# median and quartiles of a step's seconds (empty: it did not run); bytes reserved on the GPU; "memory" if it did not fit.
HEAD = "model,beside,group,gpus,batch,steps,beside_batch,beside_steps,seconds,low,high,memory,problem"
FIELDS = tuple(f"{HEAD},repetition,window,sharing,device,versions".split(","))
SIZES = {"small": 0, "full": 1}
CHUNKS = 40  # in a window
WARM_UP, TAIL = 0.4, 0.25  # shares of the window before and after it in which both processes work, too
TRIES = 5  # with windows twice as long each, if a process was not given a processor in time
LEAST_STEPS = 4  # steps in a window; a longer step has a longer window
OUT_OF_MEMORY = "memory"

Step = Callable[[], None]


class CannotMeasure(Exception):
    """No device or PyTorch, a file of another campaign, a number that is not legal, or a workload that failed."""


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

    def layer() -> Any:
        return nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    blocks = nn.ModuleList(nn.Sequential(layer(), nn.ReLU(), layer()) for _ in range(depth))
    stem, head = nn.Conv2d(3, width, 7, stride=2, padding=3), nn.Linear(width, 100)

    def loss(net: Any, x: Any, y: Any) -> Any:
        x = net["stem"](x)
        for block in net["blocks"]:
            x = torch.relu(x + block(x))
        return torch.nn.functional.cross_entropy(net["head"](x.mean((2, 3))), y)

    net = nn.ModuleDict({"stem": stem, "blocks": blocks, "head": head})
    data = torch.randn(batch, 3, pixels, pixels), torch.randint(100, (batch,))
    return _trainer(torch, device, net, loss, data, parts)


def _transformer(causal: bool) -> Callable[..., Step]:
    def build(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
        nn, width, depth, length, words = torch.nn, (64, 768)[size], (2, 8)[size], (32, 256)[size], (500, 30_000)[size]
        layer = nn.TransformerEncoderLayer(width, width // 16, 4 * width, batch_first=True, norm_first=True)
        body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        net = nn.ModuleDict({"words": nn.Embedding(words, width), "body": body, "last": nn.Linear(width, words)})
        mask = {"mask": nn.Transformer.generate_square_subsequent_mask(length).to(device), "is_causal": True}

        def loss(net: Any, x: Any, y: Any) -> Any:
            hidden = net["body"](net["words"](x), **(mask if causal else {}))
            return torch.nn.functional.cross_entropy(net["last"](hidden).flatten(0, 1), y.flatten())

        text = torch.randint(words, (batch, length + 1))
        target = text[:, 1:] if causal else text[:, :-1]  # a decoder predicts the next word, an encoder the word itself
        return _trainer(torch, device, net, loss, (text[:, :-1], target), parts)

    return build


def _recurrent(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    nn, width, length = torch.nn, (64, 1024)[size], (20, 100)[size]
    net = nn.ModuleDict({"body": nn.LSTM(width, width, 2, batch_first=True), "head": nn.Linear(width, 10)})

    def loss(net: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(net["head"](net["body"](x)[0][:, -1]), y)

    return _trainer(torch, device, net, loss, (torch.randn(batch, length, width), torch.randint(10, (batch,))), parts)


def _recommendation(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    nn, tables, rows, width, hidden = torch.nn, (4, 26)[size], (1_000, 50_000)[size], (16, 64)[size], (64, 512)[size]
    top = nn.Sequential(nn.Linear(tables * width + 13, hidden), nn.ReLU(), nn.Linear(hidden, 2))
    net = nn.ModuleDict({"words": nn.Embedding(tables * rows, width), "top": top})

    def loss(net: Any, which: Any, dense: Any, click: Any) -> Any:
        return torch.nn.functional.cross_entropy(
            net["top"](torch.cat([net["words"](which).flatten(1), dense], 1)), click
        )

    which = torch.randint(rows, (batch, tables)) + torch.arange(tables) * rows
    return _trainer(torch, device, net, loss, (which, torch.randn(batch, 13), torch.randint(2, (batch,))), parts)


def _graph(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    nn, nodes, degree, width = torch.nn, (500, 50_000)[size], 10, (32, 128)[size]
    ends, share = torch.randint(nodes, (2, degree * nodes)), torch.full((degree * nodes,), 1 / degree)
    links = torch.sparse_coo_tensor(ends, share, (nodes, nodes), check_invariants=False).coalesce().to(device)
    features, net = torch.randn(nodes, width).to(device), nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def loss(net: Any, labelled: Any, y: Any) -> Any:
        hidden = features
        for layer in net:
            with torch.autocast(device, enabled=False):  # sparse products have single precision only
                hidden = torch.sparse.mm(links, hidden.float())
            hidden = torch.relu(layer(hidden))
        return torch.nn.functional.cross_entropy(hidden[labelled], y)

    data = torch.randint(nodes, (batch,)), torch.randint(width, (batch,))
    return _trainer(torch, device, net, loss, data, parts)


def _arithmetic(torch: Any, device: str, size: int, batch: int, parts: int) -> Step:
    """Return a step of additions in Python; ``torch`` and ``device`` are not used."""
    turns = (2_000, 20_000)[size] * batch // parts

    def step() -> None:
        for _ in range(parts):
            sum(range(turns + 500))

    return step


WORKLOADS: dict[str, tuple[tuple[int, int], Callable[..., Step]]] = {
    "convolutional": ((16, 128), _convolutional),
    "transformer-encoder": ((16, 32), _transformer(causal=False)),
    "transformer-decoder": ((16, 16), _transformer(causal=True)),
    "recurrent": ((16, 128), _recurrent),
    "recommendation": ((64, 8192), _recommendation),
    "graph": ((64, 1024), _graph),
    "arithmetic": ((8, 8), _arithmetic),
}
WITHOUT_TORCH = ("arithmetic",)


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        legal = "pip install 'optsched[measure]', or --models arithmetic"
        raise CannotMeasure(f"PyTorch is missing (expected: {legal})") from None
    return torch


def _work() -> int:
    """Obey one JSON command a line of stdin: load a workload, or run it; answer each by a JSON line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    answers, sys.stdout = sys.stdout, sys.stderr
    step: Step | None = None
    torch: Any = None
    for line in sys.stdin:
        asked, answer = json.loads(line), dict[str, Any]()
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
                begin, end, _ = _chunks(step, torch, cuda, -math.inf, 0)[0]
                answer["step"] = end - begin
            else:
                assert step is not None
                answer["chunks"] = _chunks(step, torch, cuda, asked["until"], asked["window"])
            if cuda:
                answer["memory"] = torch.cuda.max_memory_reserved()
        except Exception as error:
            step = None
            crowded = isinstance(error, MemoryError) or "out of memory" in str(error).lower()
            answer["failed"] = OUT_OF_MEMORY if crowded else (str(error).splitlines() or [type(error).__name__])[0]
        try:
            print(json.dumps(answer), file=answers, flush=True)
        except BrokenPipeError:
            os._exit(0)  # the parent was interrupted
    return 0


def _chunks(step: Step, torch: Any, cuda: bool, until: float, window: float) -> list[tuple[float, float, int]]:
    """Return (begin, end, steps) of chunks of steps, on the machine's clock, until a time; at least one."""
    chunks, many = list[tuple[float, float, int]](), 1
    while not chunks or chunks[-1][1] < until:
        begin = time.perf_counter()
        for _ in range(many):
            step()
        if cuda:
            torch.cuda.synchronize()
        end = time.perf_counter()
        chunks.append((begin, end, many))
        many = max(1, round(many * min(window / CHUNKS / max(end - begin, 1e-9), 2.0)))
    return chunks


class _Worker:
    """A process that loads one workload at a time and runs it for given times."""

    def __init__(self) -> None:
        command = [sys.executable, os.path.abspath(__file__), "--worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, **asked: Any) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `answer` reports it
            print(json.dumps(asked), file=self.process.stdin, flush=True)

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found: dict[str, Any] = json.loads(line) if line else {"failed": "a process that measures was killed"}
        if found.get("failed", OUT_OF_MEMORY) != OUT_OF_MEMORY:
            raise CannotMeasure(found["failed"])
        return found

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


class Load(NamedTuple):
    """A workload with a batch in ``steps`` sub-batches."""

    model: str
    batch: int
    steps: int  # a batch in ``steps`` sub-batches


class Campaign(NamedTuple):
    """Groups of one or two loads that run at once, in the order of measurement; each is measured ``repetitions`` times."""

    groups: tuple[tuple[Load, ...], ...]
    size: str
    device: str
    seconds: float
    repetitions: int


def campaign(kind: str, models: Sequence[str], split: Sequence[int], device: str, *window: Any) -> Campaign:
    """Return a campaign: models alone and in pairs, or batches and their halves in sub-batches.

    Parameters
    ----------
    kind
        ``sharing`` or ``batches``.
    models
        Names of workloads; none: all that need PyTorch.
    split
        Numbers of sub-batches; none: 1 for ``sharing``, and 1, 2, 4, 8 for ``batches``.
    device
        ``cpu`` or ``cuda``; none: ``cuda`` if PyTorch finds a GPU.
    *window
        Seconds and repetitions of the campaign.
    """
    models = models or [name for name in WORKLOADS if name not in WITHOUT_TORCH]
    if not device:
        trains = any(name not in WITHOUT_TORCH for name in models)
        device = "cuda" if trains and _import_torch().cuda.is_available() else "cpu"
    size = "small" if device == "cpu" else "full"
    samples = {name: WORKLOADS[name][0][SIZES[size]] for name in models}
    least = min(samples.values())
    if not all(1 <= steps <= least for steps in split) or len({*models}) + len({*split}) < len(models) + len(split):
        raise CannotMeasure(f"models and split are lists of different entries, those of split from 1 to {least}")
    if kind == "batches":
        whole = [(name, samples[name] // part) for name in models for part in (1, 2)]
        parts = split or (1, 2, 4, 8)
        groups = [(Load(name, batch, steps),) for name, batch in whole for steps in parts if batch % steps == 0]
        return Campaign(tuple(groups), size, device, *window)
    loads = [Load(name, samples[name], steps) for name in models for steps in split or (1,)]
    pairs = ((a, b) for k, a in enumerate(loads) for b in loads[k:])
    return Campaign((*((a,) for a in loads), *pairs), size, device, *window)


def measure(plan: Campaign, path: str | os.PathLike[str], advance: Callable[[int, int, str], None]) -> int:
    """Measure what a file does not hold yet, append a row for each load, and return the number of groups measured.

    Parameters
    ----------
    plan
        What to measure, where, and for how long.
    path
        CSV file; it is made, or continued.
    advance
        Called with (groups done, groups in all, name of the group).
    """
    about = _machine(plan)
    done = _groups_in(path, about)
    every = [(turn, group) for turn in range(1, plan.repetitions + 1) for group in plan.groups]
    left = [(turn, group) for turn, group in every if (str(turn), " + ".join(map(str, group))) not in done]
    with contextlib.ExitStack() as stack:
        workers = [_Worker() for _ in range(max((len(group) for _, group in left), default=0))]
        for worker in workers:
            stack.callback(worker.stop)
        for number, (turn, group) in enumerate(left, len(every) - len(left)):
            advance(number, len(every), " + ".join(map(str, group)))
            _append(path, [row | about | {"repetition": turn} for row in _measured(workers, group, plan)])
    advance(len(every), len(every), "")
    return len(left)


def _measured(workers: list[_Worker], group: Sequence[Load], plan: Campaign) -> list[dict[str, Any]]:
    """Return a row for each load of a group that runs at once."""
    used, answers, common = workers[: len(group)], [], {"device": plan.device, "size": SIZES[plan.size]}
    for worker, load in zip(used, group, strict=True):  # one after the other: what does not fit fails alone
        worker.send(do="load", model=load.model, batch=load.batch, steps=load.steps, **common)
        answers.append(worker.answer())
    opens = closes = 0.0
    if not any("failed" in answer for answer in answers):
        window = max(plan.seconds, LEAST_STEPS * max(answer["step"] for answer in answers))
        for _ in range(TRIES):
            opens = time.perf_counter() + WARM_UP * window
            closes = opens + window
            for worker in used:
                worker.send(do="run", until=closes + TAIL * window, window=window, **common)
            answers = [worker.answer() for worker in used]
            if all("failed" in answer or _times(answer["chunks"], opens, closes) for answer in answers):
                break
            window *= 2
        else:
            raise CannotMeasure("the machine is too busy: no step began and ended in time (expected: longer --seconds)")
    failed, rows = any("failed" in answer for answer in answers), []
    for k, (load, answer) in enumerate(zip(group, answers, strict=True)):
        partner = group[1 - k] if len(group) == 2 else Load("", 0, 0)
        row: dict[str, Any] = {
            "model": load.model,
            "beside": partner.model,
            "group": " + ".join(map(str, group)),
            "gpus": 1,
        }
        row |= {"batch": load.batch, "steps": load.steps}
        row |= {"beside_batch": partner.batch or "", "beside_steps": partner.steps or ""}
        row |= {"memory": answer.get("memory", ""), "problem": OUT_OF_MEMORY if failed else ""}
        if not failed:
            times = _times(answer["chunks"], opens, closes)
            low, median, high = statistics.quantiles(times * 2, n=4, method="inclusive")
            row |= {"seconds": f"{median:.6g}", "low": f"{low:.6g}", "high": f"{high:.6g}"}
        rows.append(row)
    return rows


def _times(chunks: Sequence[tuple[float, float, int]], opens: float, closes: float) -> list[float]:
    """Return seconds of a step in the chunks inside a window, or in those that touch it if fewer than two are inside."""
    inside = [(end - begin) / steps for begin, end, steps in chunks if begin >= opens and end <= closes]
    touching = [(end - begin) / steps for begin, end, steps in chunks if end >= opens and begin <= closes]
    return inside if len(inside) > 1 else touching


def _machine(plan: Campaign) -> dict[str, str]:
    """Return the columns that are the same in all rows of a campaign; refuse without PyTorch or GPU."""
    device = f"{platform.machine()}, {os.cpu_count()} cores"
    about = {"device": device, "sharing": "cores", "window": f"{plan.seconds:g}"}
    versions = [f"size {plan.size}", f"python {platform.python_version()}"]
    if plan.device != "cpu" or any(load.model not in WITHOUT_TORCH for group in plan.groups for load in group):
        torch = _import_torch()
        versions.append(f"torch {torch.__version__}")
        if plan.device != "cpu":
            if not torch.cuda.is_available():
                raise CannotMeasure("PyTorch finds no GPU (expected: a GPU with its driver, or --device cpu)")
            folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
            about["device"] = torch.cuda.get_device_name()
            about["sharing"] = "MPS" if (folder / "control").exists() else "time slices"
            driver = Path("/proc/driver/nvidia/version")  # its first line names the module and its version
            versions += [
                f"cuda {torch.version.cuda}",
                *(driver.read_text().splitlines()[:1] if driver.exists() else ()),
            ]
    return {**about, "versions": "; ".join(versions)}


def _groups_in(path: str | os.PathLike[str], about: dict[str, str]) -> set[tuple[str, str]]:
    """Return (repetition, name) of the groups that a file holds whole; cut off rows that were not written whole."""
    content = Path(path).read_bytes() if os.path.exists(path) else b""
    text = content[: content.rfind(b"\n") + 1].decode("utf-8", "replace")
    head, *rows = list(csv.reader(text.splitlines())) or [list(FIELDS)]
    if tuple(head) != FIELDS or (content and not text):
        raise CannotMeasure(f"{path}: row 1: no measurements of this command (expected: another file with -o)")
    found: dict[tuple[str, str], int] = {}
    for number, cells in enumerate(rows, 2):
        row = dict(zip(FIELDS, cells, strict=False))
        for field, value in about.items():
            if row.get(field) != value:
                message = f"{path}: row {number}: {field} = {row.get(field)!r}"
                raise CannotMeasure(f"{message} (expected: {value!r}, as now; or another file with -o)")
        key = row["repetition"], row["group"]
        found[key] = found.get(key, 0) + (1 if row["beside"] else 2)
    if rows and found[key] < 2:  # the first row of a pair alone
        rows, text = rows[:-1], "".join(text.splitlines(keepends=True)[:-1])
        del found[key]
    if len(text.encode()) < len(content):
        Path(path).write_text(text, encoding="utf-8", newline="")
    return set(found)


def _append(path: str | os.PathLike[str], rows: Sequence[dict[str, Any]]) -> None:
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not file.tell():
            writer.writeheader()
        writer.writerows(rows)


def _alone() -> int:
    """Run the command line of this file alone, and return the exit status."""
    parser = argparse.ArgumentParser(description="Measure pairs of training jobs on one device, or split batches.")
    parser.add_argument("what", choices=("sharing", "batches"))
    parser.add_argument("--models", nargs="+", choices=list(WORKLOADS), default=[])
    parser.add_argument("--split", nargs="+", type=int, default=[])
    parser.add_argument("--seconds", type=float, default=2.0, help="window of a measurement; default: 2")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="")
    parser.add_argument("-o", "--output")
    asked = parser.parse_args()
    path, begin = asked.output or f"{asked.what}.csv", time.monotonic()

    try:
        plan = campaign(asked.what, asked.models, asked.split, asked.device, asked.seconds, asked.repetitions)
        measure(plan, path, lambda *at: print(f"{time.monotonic() - begin:.0f} s:", *at, file=sys.stderr))
    except CannotMeasure as refused:
        print(f"device_times: {refused}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"device_times: interrupted; {path} keeps what was measured, the same command continues", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(_work() if sys.argv[1:] == ["--worker"] else _alone())
