"""Sphinx's configuration: pages in Markdown, some of them made from the code when the documentation is built."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from made_pages import make_pages  # noqa: E402  (needs the path above)

import capsroute  # noqa: E402

project, author, version = "capsroute", "the capsroute authors", capsroute.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
html_theme = "furo"
html_title = f"capsroute {version}"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
autodoc_typehints = "none"  # signatures have them, with shapes
autodoc_member_order = "bysource"
nitpicky = False

make_pages(HERE)
