"""Sliders: a picture everywhere, a widget where there is one, and each place drawn once."""

from __future__ import annotations

import base64
import builtins
import sys
from typing import Any

import pytest

import optsched as osd
from optsched.plot.canvas import new_axes, new_figure
from optsched.plot.sliders import WIDGET

pytestmark = pytest.mark.release

drawn: list[tuple[int, str]] = []


def draw(height: int = 2, colour: str = "red") -> Any:
    drawn.append((height, colour))
    axes = new_axes(new_figure(2, height))
    axes.plot([0, 1], color=colour)
    return axes


def size(png: bytes) -> tuple[int, int]:
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_it_starts_at_the_default_and_draws_every_place_once() -> None:
    drawn.clear()
    picture = osd.plot.sliders(draw, height=[1, 2, 3], colour=["blue", "red"])
    assert picture.start == {"height": 2, "colour": "red"}
    assert size(picture.png()) == (200, 200)
    assert size(picture.png(height=3)) == (200, 300)
    picture.png(height=2, colour="red")
    assert drawn == [(2, "red"), (3, "red")]
    assert osd.plot.sliders(draw, colour=["blue"]).start == {"colour": "blue"}, (
        "a default that is no choice is no start"
    )


def test_a_page_without_widgets_gets_the_picture_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "ipywidgets":
            raise ModuleNotFoundError(name)
        return imported(name, *rest)

    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(builtins, "__import__", without)
    picture = osd.plot.sliders(draw, height=[1, 2])
    shown = picture._repr_mimebundle_()
    assert set(shown) == {"text/plain", "image/png"}
    assert base64.b64decode(shown["image/png"]) == picture.png()


def test_a_slider_that_moves_changes_the_picture() -> None:
    pytest.importorskip("ipywidgets")
    picture = osd.plot.sliders(draw, height=[1, 2])
    shown = picture._repr_mimebundle_()
    assert {"image/png", WIDGET} <= set(shown)
    knob, output = picture._widget().children
    for height in (1, 2):
        knob.value = height
        assert base64.b64decode(output.outputs[0]["data"]["image/png"]) == picture.png(height=height)


@pytest.mark.parametrize(
    ("choices", "message"),
    [({"width": [1]}, "choices = 'width'.*parameters of draw"), ({"height": []}, "height.*at least one value")],
)
def test_what_cannot_be_moved_is_said(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(osd.InputError, match=message):
        osd.plot.sliders(draw, **choices)
