"""Peak single-precision speed of a GPU type: what unknown throughputs are scaled by.

Public specifications, TFLOP/s, of one GPU as a scheduler sees it (one GK210 of the two on a K80 board). A scaled
throughput is a guess: real ratios follow memory bandwidth, batch size and kernels, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from optsched.errors import InputError
from optsched.registry import near_matches

FP32_TFLOPS: Mapping[str, float] = {
    "K80": 4.1,
    "P100": 9.5,
    "V100": 15.7,  # SXM2; 14 on PCIe
    "A100": 19.5,
    "T4": 8.1,
    "T400": 1.1,
    "Titan RTX": 16.3,
    "RTX 3090": 35.6,
    "RTX A2000": 8.0,
}


def _plain(gpu: str) -> str:
    return "".join(letter for letter in gpu.casefold() if letter.isalnum())


_BY_PLAIN_NAME = {_plain(gpu): tflops for gpu, tflops in FP32_TFLOPS.items()}


def device_performance(gpu: str) -> float:
    """FP32 peak of a GPU type in TFLOP/s; case, blanks and ``-``, ``_`` do not matter.

    Raises
    ------
    InputError
        For a type that is not in the list; the message names those that are.
    """
    tflops = _BY_PLAIN_NAME.get(_plain(gpu))
    if tflops is None:
        raise InputError(
            "the performance of this GPU type is not known",
            field="gpu",
            value=gpu,
            legal=near_matches(gpu, list(FP32_TFLOPS), kind="GPU type"),
        )
    return tflops
