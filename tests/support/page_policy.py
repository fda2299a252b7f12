"""What a page has that its Content-Security-Policy does not allow; computed from the page alone."""

import base64
import hashlib
from html.parser import HTMLParser

REFERENCES = ("src", "srcset", "data", "action", "formaction", "poster", "background", "ping")


class Seen(HTMLParser):
    """The policy of a page, its styles and scripts, and what may not be there."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.policy, self.texts, self.wrong, self.before = "", {"style": [], "script": []}, [], []
        self._open = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.wrong += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        self.wrong += [f"{tag} {name}" for name in given if name in REFERENCES and not given[name].startswith("data:")]
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        elif not self.policy and tag not in ("html", "head", "meta"):
            self.wrong.append(f"{tag} before the policy")
        if tag in self.texts and given.get("type") != "application/json":
            self._open = self.texts[tag]
            self._open.append("")
        if tag in ("link", "base", "iframe", "object", "embed", "form", "img"):
            self.wrong.append(tag)

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag):
        if tag in self.texts:
            self._open = None

    def handle_data(self, data):
        if self._open is not None:
            self._open[-1] += data


def breaks(page):
    """What the page's policy forbids or lacks; [] for a page that is as it says."""
    seen = Seen(page)
    said = dict(part.split(" ", 1) for part in seen.policy.split("; ")) if seen.policy else {}
    must = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    for name, texts in (("style-src", seen.texts["style"]), ("script-src", seen.texts["script"])):
        if texts:
            digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts}
            must[name] = " ".join(f"'sha256-{digest}'" for digest in sorted(digests))
    return seen.wrong + ([] if said == must else [f"says {said}, must be {must}"])
