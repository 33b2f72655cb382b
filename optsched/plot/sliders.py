"""`sliders`: a picture whose parameters can be moved in a notebook, and which is a picture everywhere else."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optsched.errors import check_legal
from optsched.plot.canvas import png_of

Draw = Callable[..., Axes | Figure]
WIDGET = "application/vnd.jupyter.widget-view+json"


class Sliders:
    """What `sliders` gives: a notebook shows it when a cell ends with it.

    It shows itself in two forms, a widget and a PNG, and whatever displays it takes the richest that it can: Jupyter the
    sliders, a page without a kernel (or a kernel without ipywidgets) the picture at the start. A place that was visited
    before is not drawn again.
    """

    def __init__(self, draw: Draw, choices: dict[str, list[Any]], start: dict[str, Any]) -> None:
        self.start = start
        self._draw, self._choices = draw, choices
        self._drawn: dict[tuple[Any, ...], bytes] = {}

    def __repr__(self) -> str:
        return f"Sliders({', '.join(f'{name}={value}' for name, value in self.start.items())})"

    def png(self, **moved: Any) -> bytes:
        """The picture with some parameters moved from the start, as PNG."""
        place = {**self.start, **moved}
        key = tuple(place[name] for name in self.start)
        if key not in self._drawn:
            self._drawn[key] = png_of(self._draw(**place), dpi=100)
        return self._drawn[key]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = self._bundle(self.start)
        if find_spec("ipywidgets") is not None:
            view = self._widget()._repr_mimebundle_()
            bundle |= {WIDGET: view[WIDGET]} if view and WIDGET in view else {}
        return bundle

    def _bundle(self, place: dict[str, Any]) -> dict[str, Any]:
        return {"text/plain": repr(self), "image/png": base64.b64encode(self.png(**place)).decode()}

    def _widget(self) -> Any:
        import ipywidgets

        picture = ipywidgets.Output()
        knobs = {
            name: ipywidgets.SelectionSlider(
                options=values, value=self.start[name], description=name, continuous_update=False
            )
            for name, values in self._choices.items()
        }

        def moved(_: Any) -> None:
            shown = self._bundle({name: knob.value for name, knob in knobs.items()})
            picture.outputs = ({"output_type": "display_data", "data": shown, "metadata": {}},)

        moved(None)
        for knob in knobs.values():
            knob.observe(moved, "value")
        return ipywidgets.VBox([*knobs.values(), picture])


def sliders(draw: Draw, **choices: Sequence[Any]) -> Sliders:
    """A picture with a slider for every parameter of ``draw`` that has ``choices``; without widgets, the picture alone.

    Parameters
    ----------
    draw : function of these parameters, by name, that returns a figure or axes: any call of `optsched.plot`, or one that
        runs a policy first. It starts at the default of its parameter where that is among the choices, else at the first.
    choices : parameter -> the values that its slider takes, at least one.

    Raises `InputError` for a parameter without values, and one that ``draw`` does not take. Sliders need ipywidgets
    (``pip install 'optsched[notebooks]'``); without it nothing else is missing.

    >>> import optsched as osd
    >>> def gantt(load=0.9):
    ...     jobs = osd.generate("poisson", seed=1, jobs=20, cluster="2x4", load=load)
    ...     return osd.plot.gantt(osd.simulate(jobs, "srtf"))
    >>> osd.plot.sliders(gantt, load=[0.5, 0.9, 1.2])
    Sliders(load=0.9)
    """
    taken = inspect.signature(draw).parameters
    start = {}
    for name, values in choices.items():
        check_legal(name in taken, "choices", name, f"parameters of {getattr(draw, '__name__', draw)}")
        check_legal(len(values) > 0, name, list(values), "at least one value")
        usual = taken[name].default
        start[name] = usual if usual in values else values[0]
    return Sliders(draw, {name: list(values) for name, values in choices.items()}, start)
