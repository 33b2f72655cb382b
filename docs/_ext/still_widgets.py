"""Sliders without a kernel: the site shows their settings and the picture, without scripts from other servers."""

from __future__ import annotations

import html
import json
import re
from typing import Any

VIEW = re.compile(r'<script type="application/vnd.jupyter.widget-view\+json">(.*?)</script>', re.DOTALL)
STATE = "application/vnd.jupyter.widget-state+json"


def setup(app: Any) -> dict[str, bool]:
    """Connect to the page event of Sphinx, after myst_nb has added the state of the widgets."""
    app.connect("html-page-context", _still, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _still(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    files = context.get("script_files", [])
    kept = next((file for file in files if getattr(file, "attributes", {}).get("type") == STATE), None)
    if kept is not None:
        models = json.loads(kept.attributes["body"])["state"]
        context["body"] = VIEW.sub(lambda view: shown(models, json.loads(view[1])["model_id"]), context["body"])
        files.remove(kept)


def shown(models: dict[str, Any], widget: str) -> str:
    """Return a widget as HTML: its parts, the value of a control, the outputs of a cell."""
    state = models[widget]["state"]
    if "children" in state:
        parts = [shown(models, child.removeprefix("IPY_MODEL_")) for child in state["children"]]
        return f'<div class="still">{"".join(parts)}</div>'
    if "outputs" in state:
        return "".join(map(_output, state["outputs"]))
    labels = state.get("_options_labels")
    value = labels[state["index"]] if labels and state.get("index") is not None else state.get("value", "")
    text = html.escape(f"{state.get('description', '')} = {value}" if state.get("description") else str(value))
    return f'<span class="knob" title="a slider when the notebook runs">{text}</span>'


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        return f'<img alt="Picture drawn by the cell" src="data:image/png;base64,{"".join(data["image/png"].split())}">'
    return data.get("text/html") or f"<pre>{html.escape(data.get('text/plain', ''))}</pre>"
