"""Pictures that pages show, each with the command that draws it, and how like two of them are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.image import imread

from pages.page import ROOT
from pages.player import command

# picture: the commands that draw it, as README.md has them
DRAWN = {
    ROOT / "docs" / "fifo.png": (
        "run rigid-12-1 -p fifo -p srtf -o result",
        "plot result/schedule-01-fifo.json --instance rigid-12-1 -o fifo.png",
    )
}
VISIBLE = 0.1  # of full brightness, in any colour
TOLERATED = 0.01  # of the pixels: letters that another version of the library sets otherwise; a block is far more


def draw(picture: Path, folder: Path) -> Path:
    """Draw a picture again in ``folder``, which must be the working directory."""
    for line in DRAWN[picture]:
        command(line.split())
    return folder / picture.name


def difference(one: Path, other: Path) -> float:
    """The share of pixels that visibly differ; 1 where not even the sizes agree."""
    first, second = imread(one)[..., :3], imread(other)[..., :3]
    if first.shape != second.shape:
        return 1.0
    return float(np.mean(np.abs(first - second).max(axis=-1) > VISIBLE))
