"""Assets and contents → one HTML page that needs nothing else: no server, no network.

Nothing of the data is ever code. Data stand in elements that browsers do not execute, written so that no character of
them can end the element; and the page's policy allows those scripts only whose hashes it lists.
"""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from abstain._report.encoding import pack
from abstain._report.payload import Contents
from abstain._utils.extras import optional

ENGINE = "arrays.js", "profiles.js", "answers.js", "decisions.js"
VIEW = (
    "elements.js",
    "format.js",
    "theme.js",
    "plots.js",
    "chosen_point.js",
    "store.js",
    "summary.js",
    "figures.js",
    "cheapest.js",
    "curves.js",
    "reliability.js",
    "label_choice.js",
    "in_sight.js",
    "labels.js",
    "instance.js",
    "instances.js",
    "recipe.js",
    "entry.js",
    "controls.js",
    "main.js",
)
PLACEHOLDERS = "title", "policy", "style", "data", "scripts"


def render(contents: Contents) -> str:
    """The page that shows these contents.

    Examples
    --------
    >>> from abstain._report.payload import gather
    >>> from abstain._report.page import render
    >>> page = render(gather([[0.9, 0.4]], losses=["hamming"], title="a < b"))
    >>> page[:15], "<title>a &lt; b</title>" in page
    ('<!doctype html>', True)
    """
    plotly, scripts = _plotly(), [_asset(name) for name in (*ENGINE, *VIEW)]
    # Reading plotly takes browsers a second, and it is large: it is packed, and the view runs it after the first
    # drawing. The policy has the hash of its code as it is run.
    packed = f'<script type="text/plain" id="data-plotly">{pack(plotly.encode("utf-8"))}</script>'
    return fill(
        _asset("page.html"),
        {
            "title": _text(contents.facts["title"]),
            "policy": _policy([plotly, *scripts]),
            "style": _asset("style.css"),
            "data": _data(contents),
            "scripts": "\n".join([packed, *(f"<script>{script}</script>" for script in scripts)]),
        },
    )


def fill(template: str, parts: dict[str, str]) -> str:
    """The template with each {{placeholder}} replaced, all at once: what is put in is not looked at again.

    Examples
    --------
    >>> from abstain._report.page import fill
    >>> names = "title", "policy", "style", "data", "scripts"
    >>> fill("{{title}} {{policy}} {{style}} {{data}} {{scripts}}", dict.fromkeys(names, "{{data}}"))
    '{{data}} {{data}} {{data}} {{data}} {{data}}'
    """
    found = re.findall(r"\{\{(\w+)\}\}", template)
    if sorted(found) != sorted(PLACEHOLDERS):
        raise ValueError(f"the template has the placeholders {found}; expected each of {PLACEHOLDERS} once")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _asset(name: str) -> str:
    return _harmless((files("abstain._report") / "assets" / name).read_text(encoding="utf-8"))


def _plotly() -> str:
    return str(optional("plotly.offline", "a report needs plotly").get_plotlyjs())


def _harmless(script: str) -> str:
    """A script that ends where it should: browsers read up to </script, and turn CR into LF before they hash."""
    return re.sub(r"</(?=script)", r"<\\/", script.replace("\r\n", "\n"), flags=re.IGNORECASE)


def _policy(scripts: list[str]) -> str:
    """Scripts with these hashes, styles and pictures of the page itself, and nothing from anywhere."""
    hashes = (b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii") for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _data(contents: Contents) -> str:
    elements = [f'<script type="application/json" id="data-facts">{_json(contents.facts)}</script>']
    for name, text in contents.texts.items():
        elements.append(f'<script type="text/plain" id="data-{name}">{text}</script>')
    return "\n".join(elements)


def _json(value: Any) -> str:
    """JSON in ASCII without <, > and &: no text in it can end its element, or begin a comment."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _text(words: str) -> str:
    """Words as HTML; half a character cannot be written, and stands as a question mark."""
    return escape(words.encode("utf-8", "replace").decode("utf-8"))
