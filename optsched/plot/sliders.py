"""`sliders`: a picture with movable parameters in a notebook, and a still picture elsewhere."""

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
    """Result of `sliders`, shown by a notebook if a cell ends with it.

    It has two forms, a widget and a PNG. Jupyter shows the sliders; a page without a kernel, or a kernel without ipywidgets,
    shows the initial picture. Settings that were visited before are not drawn again.
    """

    def __init__(self, draw: Draw, choices: dict[str, list[Any]], start: dict[str, Any]) -> None:
        self.start = start
        self._draw, self._choices = draw, choices
        self._drawn: dict[tuple[Any, ...], bytes] = {}

    def __repr__(self) -> str:
        return f"Sliders({', '.join(f'{name}={value}' for name, value in self.start.items())})"

    def png(self, **moved: Any) -> bytes:
        """Return the picture with some parameters changed from their start, as PNG.

        Parameters
        ----------
        **moved
            Values of the changed parameters.
        """
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
    """Show a picture with a slider for every parameter in ``choices``; without widgets, show the picture alone.

    Parameters
    ----------
    draw
        Function of these parameters, by name, that returns a figure or axes: any call of `optsched.plot`, or one that runs a
        policy first. A parameter starts at its default if that is among the choices, otherwise at the first choice.
    **choices
        The values of each slider, at least one.

    Raises
    ------
    InputError
        If a parameter has no values, or ``draw`` does not take it.

    Notes
    -----
    Sliders need ipywidgets (``pip install 'optsched[notebooks]'``); nothing else does.

    Examples
    --------
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
