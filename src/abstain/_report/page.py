"""Assets and payload → one HTML page that needs nothing else: no server, no network.

Nothing of the data is ever code. Data stand in elements that browsers do not execute, written so that no character of
them can end the element; and the page's policy allows only the scripts whose hashes it lists.
"""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from abstain._report.encoding import pack
from abstain._report.payload import Payload
from abstain._utils.extras import optional

ENGINE = ("arrays", "sorting", "profiles", "answers", "engines", "choice", "problem", "dataset")
VIEW = (
    "elements",
    "format",
    "theme",
    "plots",
    "chosen_point",
    "store",
    "summary",
    "bill",
    "figures",
    "lowest_bill",
    "curves",
    "label_select",
    "reliability",
    "lazy_drawing",
    "label_table",
    "instance_card",
    "instance_list",
    "code_examples",
    "number_field",
    "controls",
    "main",
)
SCRIPTS = (*(f"engine/{name}.js" for name in ENGINE), *(f"view/{name}.js" for name in VIEW))
"""The scripts of the page, in the order in which it runs them."""
PLACEHOLDERS = "title", "policy", "style", "data", "scripts"


def render(payload: Payload) -> str:
    """Return the HTML of the page that shows this payload.

    Examples
    --------
    >>> from abstain._report.payload import build_payload
    >>> from abstain._report.page import render
    >>> page = render(build_payload([[0.9, 0.4]], losses=["hamming"], title="a < b"))
    >>> page[:15], "<title>a &lt; b</title>" in page
    ('<!doctype html>', True)
    """
    plotly, scripts = _plotly(), [_asset(name) for name in SCRIPTS]
    # Plotly is large and takes browsers a second to parse: it is packed, and runs after the page is first drawn. The
    # policy has the hash of its code as it is run.
    packed = f'<script type="text/plain" id="data-plotly">{pack(plotly.encode("utf-8"))}</script>'
    return fill(
        _asset("view/page.html"),
        {
            "title": _text(payload.facts["title"]),
            "policy": _policy([plotly, *scripts]),
            "style": _asset("view/style.css"),
            "data": _data(payload),
            "scripts": "\n".join([packed, *(f"<script>{script}</script>" for script in scripts)]),
        },
    )


def fill(template: str, parts: dict[str, str]) -> str:
    """Return the template with each {{placeholder}} replaced, all at once: placeholders in the parts stay as they are.

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
    return _closed_safely((files("abstain._report") / "assets" / name).read_text(encoding="utf-8"))


def _plotly() -> str:
    return str(optional("plotly.offline", "a report needs plotly").get_plotlyjs())


def _closed_safely(script: str) -> str:
    """Escape </script, where browsers would end the element, and use LF, as browsers do before they hash."""
    return re.sub(r"</(?=script)", r"<\\/", script.replace("\r\n", "\n"), flags=re.IGNORECASE)


def _policy(scripts: list[str]) -> str:
    """Return a policy that allows scripts with these hashes, styles and images of the page, and no network."""
    hashes = (b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii") for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _data(payload: Payload) -> str:
    elements = [f'<script type="application/json" id="data-facts">{_json(payload.facts)}</script>']
    for name, text in payload.texts.items():
        elements.append(f'<script type="text/plain" id="data-{escape(name)}">{text}</script>')
    return "\n".join(elements)


def _json(value: Any) -> str:
    """Return JSON in ASCII without <, > and &: no text in it can end its element, or begin a comment."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _text(text: str) -> str:
    """Escape a text for HTML; half a surrogate pair, which UTF-8 cannot encode, becomes a question mark."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"))
