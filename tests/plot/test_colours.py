"""Colours: stable, told apart, readable."""

from __future__ import annotations

import random

import numpy as np
import pytest

from optsched.plot.colours import PALETTE, ink_on, job_colours, natural

pytestmark = pytest.mark.release

# Severe deuteranopia and protanopia as linear maps of linear RGB (Machado, Oliveira, Fernandes 2009, table 1).
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def linear(colour: np.ndarray) -> np.ndarray:
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB, D65."""
    xyz = np.clip(rgb, 0, 1) @ np.array(
        [[0.4124564, 0.2126729, 0.0193339], [0.3575761, 0.7151522, 0.1191920], [0.1804375, 0.0721750, 0.9503041]]
    )
    f = np.cbrt(np.maximum(xyz / [0.95047, 1.0, 1.08883], 0.008856))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", DEFICIENCIES)
def test_consecutive_jobs_are_told_apart_by_every_eye(eye: str) -> None:
    seen = [lab(np.asarray(DEFICIENCIES[eye]) @ linear(colour)) for colour in PALETTE]
    for k in range(len(seen)):
        for ahead in (1, 2):
            assert np.linalg.norm(seen[k] - seen[(k + ahead) % len(seen)]) > 16  # 2 to 3 is just noticeable


def test_eight_jobs_in_a_row_are_far_apart_on_a_chart() -> None:
    seen = [lab(linear(colour)) for colour in PALETTE]
    for k in range(len(seen)):
        for ahead in range(1, 8):
            assert np.linalg.norm(seen[k] - seen[(k + ahead) % len(seen)]) > 23


@pytest.mark.parametrize("eye", DEFICIENCIES)
def test_no_two_of_eight_jobs_look_alike_to_any_eye(eye: str) -> None:
    colours = job_colours([str(k) for k in range(1, 9)])
    seen = [lab(np.asarray(DEFICIENCIES[eye]) @ linear(colour)) for colour in colours]
    assert min(float(np.linalg.norm(a - b)) for k, a in enumerate(seen) for b in seen[:k]) > 8


def test_colour_follows_the_id_and_not_the_order() -> None:
    ids = [f"j{k}" for k in range(30)]
    shuffled = random.Random(1).sample(ids, len(ids))
    colours = dict(zip(ids, map(tuple, job_colours(ids)), strict=True))
    assert colours == dict(zip(shuffled, map(tuple, job_colours(shuffled)), strict=True))
    assert [colours[f"j{k}"] for k in range(21)] == [tuple(row) for row in PALETTE]
    assert job_colours([]).shape == (0, 3)


def test_ids_sort_as_people_count() -> None:
    assert sorted(["j10", "j2", "", "10", "9", "j2b", "k1"], key=natural) == ["", "9", "10", "j2", "j2b", "j10", "k1"]


def test_text_reads_on_every_colour() -> None:
    for colour in PALETTE:
        luminance = float(linear(colour) @ [0.2126, 0.7152, 0.0722])
        text = 0.0 if ink_on(colour) == "black" else 1.0
        assert (max(luminance, text) + 0.05) / (min(luminance, text) + 0.05) >= 4.5  # WCAG 2, level AA
