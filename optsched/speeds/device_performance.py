"""Public specifications of GPU types: what unknown throughputs are scaled by.

Of one GPU as a scheduler sees it (one GK210 of the two on a K80 board). ``fp32`` and ``tensor``: peak TFLOP/s in single
precision, and of dense FP16 products on tensor cores that accumulate in FP32, without sparsity; ``memory`` GB, ``bandwidth``
GB/s. Two types that both state ``tensor`` compare by it, since training from Volta on runs there; any others by ``fp32``. A
scaled throughput is a guess: real ratios follow memory bandwidth, batch size and kernels, too (an H100 trains a V100's job
perhaps four times as fast, not eight).

**Sources**: NVIDIA's data sheets of K80, P100 (PCIe; ``fp32`` between PCIe and SXM2), V100 (SXM2, 16 GB), A100 (SXM, 80 GB),
H100 (SXM: 1,979 TFLOP/s with sparsity, half of it dense), L40S, T4, T400, RTX A2000; of Titan RTX and RTX 3090 the product
pages; of RTX 4090 the Ada architecture's whitepaper. T4, Titan RTX, RTX 3090 and RTX A2000 have tensor cores whose peak is
left out: HadarE's mixes are of such cards, and their rates are scaled by FP32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optsched.errors import InputError
from optsched.registry import near_matches


@dataclass(frozen=True)
class Device:
    """One GPU: see the module; ``tensor`` 0: none, or left out."""

    fp32: float
    memory: float
    bandwidth: float
    tensor: float = 0.0

    def __str__(self) -> str:
        products = f", FP16 tensor {self.tensor:g}" if self.tensor else ""
        return f"FP32 {self.fp32:g}{products} TFLOP/s, {self.memory:g} GB at {self.bandwidth:g} GB/s"


DEVICES: Mapping[str, Device] = {
    "K80": Device(4.1, 12, 240),
    "P100": Device(9.5, 16, 732),
    "V100": Device(15.7, 16, 900, 125),  # SXM2; 14 on PCIe
    "A100": Device(19.5, 80, 2039, 312),  # 40 GB at 1555 GB/s: the same peaks
    "H100": Device(67, 80, 3350, 989),
    "L40S": Device(91.6, 48, 864, 362),
    "RTX 4090": Device(82.6, 24, 1008, 165),
    "T4": Device(8.1, 16, 300),
    "T400": Device(1.1, 2, 80),
    "Titan RTX": Device(16.3, 24, 672),
    "RTX 3090": Device(35.6, 24, 936),
    "RTX A2000": Device(8.0, 6, 288),
}


def _plain(gpu: str) -> str:
    return "".join(letter for letter in gpu.casefold() if letter.isalnum())


_BY_PLAIN_NAME = {_plain(gpu): device for gpu, device in DEVICES.items()}


def is_known(gpu: str) -> bool:
    """Is it in the list? Case, blanks and ``-``, ``_`` do not matter."""
    return _plain(gpu) in _BY_PLAIN_NAME


def _device(gpu: str) -> Device:
    if not is_known(gpu):
        legal = near_matches(gpu, list(DEVICES), kind="GPU type")
        raise InputError("the performance of this GPU type is not known", field="gpu", value=gpu, legal=legal)
    return _BY_PLAIN_NAME[_plain(gpu)]


def compares_by_tensor(gpu: str, other: str) -> bool:
    """Do both state the peak of their tensor cores?"""
    return _device(gpu).tensor > 0 and _device(other).tensor > 0


def performance_ratio(gpu: str, other: str = "V100") -> float:
    """How many times as fast as ``other`` a GPU type is at its peak; `InputError` for a type that is not in the list."""
    one, two = _device(gpu), _device(other)
    return one.tensor / two.tensor if compares_by_tensor(gpu, other) else one.fp32 / two.fp32
