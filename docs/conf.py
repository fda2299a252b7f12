"""The site: `make docs`, into docs/_build."""

import inspect
import json
import re
import tomllib
from pathlib import Path

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

from envs.treatment import TreatmentEnv

ROOT = Path(__file__).parents[1]
project = "policysim"
author = "policysim developers"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"policysim {release}"
html_copy_source = False
html_show_copyright = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
default_role = "code"  # as in Markdown

myst_heading_anchors = 3  # headings can be linked to, as on the forge
# The environment's own words are Markdown, as Gymnasium's are; its headings belong to no page.
words = inspect.getdoc(TreatmentEnv) or ""
myst_enable_extensions = ["deflist", "substitution"]
myst_substitutions = {"treatment_env": re.sub(r"^## (.+)$", r"\n**\1**\n", words, flags=re.MULTILINE)}

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say shapes and units
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Keys", "params_style")]  # of a study or scenario file

# Every link must lead somewhere. But types and errors in docstrings are words: "array, (n_records, n_actions)".
nitpick_ignore_regex = [("py:(class|exc)", r".*")]
suppress_warnings = ["ref.python"]  # such a word that names two things


def link_reports_as_files(source: list[str]) -> None:
    """Reports that are texts are no pages of the site, but files that it hands out, as those that are pages are."""
    source[0] = re.sub(r"\]\((\.\./reports/[\w-]+/README\.md)\)", r"](path:\1)", source[0])


def as_plain_text(lines: list[str]) -> None:
    """Docstrings are plain text with code in backticks: |x| is no substitution there, and x_ no link."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`+[^`]*`+)", line)
            parts[::2] = [re.sub(r"(?<=\w)_(?!\w)", r"\\_", part.replace("|", r"\|")) for part in parts[::2]]
            lines[number] = "".join(parts)


class NotebookParser(MystParser):  # type: ignore[misc]  # the package has no types
    """A notebook as a page: its words, its code, and what that prints."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the Markdown that says the same."""
        parts = []
        for cell in json.loads(inputstring)["cells"]:
            text = "".join(cell["source"])
            parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
            for output in cell.get("outputs", []):
                printed = "".join(output["text"] if "text" in output else output["data"]["text/plain"])
                parts.append(f"```text\n{printed.rstrip()}\n```")
        super().parse("\n\n".join(parts), document)


def setup(app: Sphinx) -> None:
    """Notebooks are pages, reports are files; docstrings are read before napoleon looks at them."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", lambda *given: link_reports_as_files(given[-1]))
    app.connect("autodoc-process-docstring", lambda *given: as_plain_text(given[-1]), priority=100)
