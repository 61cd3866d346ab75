"""Reads the translatable texts of the package, the catalogs, and the texts of a page.

The sources are parsed like makemessages does, but without the gettext tools, which may not be installed.
"""

import ast
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import polib
from django.utils.translation.template import templatize

import django_rtq

PACKAGE = Path(django_rtq.__file__).parent
#: The folder of a catalog, and what a browser sends that wants it.
LANGUAGES = {"zh_Hans": "zh-CN,zh;q=0.9", "pt_BR": "pt-BR,pt;q=0.9"}

_CALLS = {  # whose first arguments these are
    "_": ("text",),
    "gettext": ("text",),
    "ngettext": ("text", "plural"),
    "pgettext": ("context", "text"),
    "npgettext": ("context", "text", "plural"),
}
_LITERAL = r"""u?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
_MARKED = re.compile(rf"\b(_|gettext|n?pgettext|ngettext)\(({_LITERAL}(?:,\s*{_LITERAL})*)")
_PLACEHOLDER = re.compile(r"%\(\w+\)[-#0 +]*[\d.]*[a-z]|%%|\{\w+\}|</?\w+[^>]*>")


class Text(NamedTuple):
    """The key of a translation in a catalog."""

    context: str
    text: str
    plural: str


@cache
def marked_texts():
    """Every translatable text of the package."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(_in_python(path))
    for path in sorted(PACKAGE.rglob("*.html")):
        found.update(_in_template(path))
    return found


def catalog(language, kind="po"):
    """The entries of a .po or .mo file."""
    path = PACKAGE / "locale" / language / "LC_MESSAGES" / f"django.{kind}"
    return (polib.pofile if kind == "po" else polib.mofile)(str(path))


def key_of(entry):
    return Text(entry.msgctxt or "", entry.msgid, entry.msgid_plural or "")


@cache
def translated(language):
    """The keys of the texts that have a translation. The others are in English on the pages."""
    return {key_of(entry) for entry in catalog(language) if all(translations_of(entry)) and not entry.fuzzy}


def translations_of(entry):
    """The translation, or all its plural forms."""
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


def placeholders(text):
    """Placeholders and tags, which a translation must keep."""
    return Counter(_PLACEHOLDER.findall(text))


def said_by(html):
    """The texts of a page in order: between tags, and in attributes that users see or hear."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return [" ".join(text.split()) for text in reader.texts]


def write_marks(folder):
    """Write an Esperanto catalog in which every translatable text is put in brackets."""
    found = polib.POFile()
    found.metadata = {"Content-Type": "text/plain; charset=utf-8", "Plural-Forms": "nplurals=2; plural=(n != 1);"}
    for context, text, plural in marked_texts():
        forms = {"msgstr_plural": {0: f"⟦{text}⟧", 1: f"⟦{plural}⟧"}} if plural else {"msgstr": f"⟦{text}⟧"}
        entry = polib.POEntry(msgid=text, msgid_plural=plural, **forms)
        entry.msgctxt = context or None
        found.append(entry)
    path = folder / "eo" / "LC_MESSAGES"
    path.mkdir(parents=True)
    found.save_as_mofile(str(path / "django.mo"))


def not_marked(html):
    """Texts of a page outside of brackets."""
    text, before = "\n".join(said_by(html)), ""
    while text != before:
        before, text = text, re.sub("⟦[^⟦⟧]*⟧", "", text)
    return {line.strip() for line in text.splitlines() if re.search("[A-Za-z]{2}", line)}


def _in_python(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", "")).removesuffix("_lazy").removesuffix("_noop")
        if name in _CALLS:
            given = [argument.value if isinstance(argument, ast.Constant) else None for argument in node.args]
            yield _text(name, given, f"{path}:{node.lineno}")


def _in_template(path):
    for found in _MARKED.finditer(templatize(path.read_text())):
        yield _text(found[1], ast.literal_eval(f"[{found[2]}]"), path)


def _text(name, given, where):
    named = dict(zip(_CALLS[name], given, strict=False))
    assert len(named) == len(_CALLS[name]), f"{where}: {name}() needs more texts"
    assert all(isinstance(text, str) for text in named.values()), f"{where}: {name}() of what is no literal text"
    return Text(named.get("context", ""), named["text"], named.get("plural", ""))


class _Reader(HTMLParser):
    """Collects the texts of a page, except for commands, code and data."""

    _SEEN = ("aria-label", "title", "alt", "placeholder", "data-rtq-on", "data-rtq-off", "data-rtq-stale")
    _SEEN += ("data-rtq-ended", "data-rtq-pause", "data-rtq-resume")
    _QUIET = ("script", "style", "pre", "code", "textarea")

    def __init__(self):
        super().__init__()
        self.texts, self._quiet = [], 0

    def handle_starttag(self, tag, attrs):
        self._quiet += tag in self._QUIET
        self.texts += [value for name, value in attrs if name in self._SEEN and value]

    def handle_endtag(self, tag):
        self._quiet -= tag in self._QUIET

    def handle_data(self, data):
        if not self._quiet:
            self.texts.append(data)
