"""Configuration of Sphinx, called by `build.py`. Neither the build nor the pages load anything from other servers."""

import os
import sys

from api_pages import VIEW
from catalogue import readable
from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

import optsched

os.environ.update(COLUMNS="100", OMP_NUM_THREADS="1")

project = "optsched"
author = copyright = "The optsched authors"
version = release = optsched.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "sphinx_copybutton", "still_widgets", "gallery"]
language = "en"
default_role = "py:obj"  # `Instance` in a docstring is a link if it exists, else code
highlight_language = "none"
smartquotes = False  # --model is an option

# pages: the same anchors as on GitHub, so that links work in both places
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["mystnb.unknown_mime_type"]

# notebooks: run at build time, and kept until they change
nb_execution_mode = "cache"
nb_execution_cache_path = os.path.join(os.path.dirname(__file__), "..", "build", "docs", "executed")
nb_execution_timeout = 600  # wall seconds for a cell, including compilation: the machine may be busy
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js = {}  # the default loads scripts from another server: see still_widgets

napoleon_google_docstring = False
napoleon_custom_sections = [("Fields", "params_style")]
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "optsched"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
copybutton_selector = (
    "div.highlight-sh pre, div.highlight-bash pre, div.highlight-python pre, div.highlight-ipython3 pre"
)
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {name: [] for name in ("index", "first-steps", "glossary", "gallery", "cite")}
html_theme_options = {
    "logo": {"text": f"optsched {version}"},
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "navbar_end": ["theme-switcher"],
    "show_nav_level": 1,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "article_header_start": ["breadcrumbs"],
    "back_to_top_button": False,
    "pygments_light_style": "tango",
}
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"


def _formula(self, node):
    text = tex2mathml(node.astext(), as_block=node.tagname == "math_block")
    around = "div" if node.tagname == "math_block" else "span"
    self.body.append(f'<{around} class="formula">{text}</{around}>')
    raise SkipNode


_plain = {}  # docstrings of attributes; napoleon would read text before a colon as a type


def _docstring(app, what, name, obj, options, lines):
    lines[:] = readable(lines)
    if what in ("attribute", "property", "data"):
        _plain[name] = list(lines)


def _after_napoleon(app, what, name, obj, options, lines):
    lines[:] = _plain.pop(name, lines)


def _signature(app, what, name, obj, options, signature, returned):
    if signature == "(*args, **kwargs)" or name == VIEW:  # a protocol has no constructor; the engine makes views
        return "", None
    return (signature.replace("<factory>", "..."), returned) if signature else None


def setup(app):
    """Connect the events of Sphinx, and render formulas as MathML, which needs no script and no fonts."""
    for module in [module for name, module in sys.modules.items() if name.startswith("optsched")]:
        for name in {"Floats", "Ints", "Bools"} & vars(module).keys():  # not ndarray[tuple[Any, ...], dtype[float64]]
            setattr(module, name, type(name, (), {"__module__": "builtins"}))
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("autodoc-process-docstring", _docstring, priority=100)
    app.connect("autodoc-process-docstring", _after_napoleon, priority=900)
    app.connect("autodoc-process-signature", _signature)
