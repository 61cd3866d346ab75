"""Builds the documentation site with Sphinx: `make docs`. The pages are the Markdown files in docs/, unchanged.

Beside each page lies its Markdown, and llms.txt lists all of them. Nothing is loaded from another host.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import django

DOCS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(DOCS.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
django.setup()

from django_rtq import __version__  # noqa: E402
from docs.site import reference  # noqa: E402

# The pages in the order of the menu. A page that is in none of these lists is a warning, and warnings are errors.
NAVIGATION = {
    "Tutorial": ["tutorial"],
    "How to": ["troubleshooting", "how-to/index", "coming-from"],
    "Using it": [
        "tasks", "workflows", "steps", "limits", "middleware", "transactions", "async", "testing", "periodic",
        "exactly-once", "mail", "django-tasks", "admin",
    ],
    "Running it": [
        "settings", "worker", "site/commands", "monitoring", "site/metrics", "incidents", "redis", "site/keys",
        "scaling", "compatibility",
    ],
    "Public API": ["api", "site/signatures", "site/exceptions", "site/testing"],
    "Explanation": ["why", "guarantees", "lifecycle", "architecture", "performance"],
}  # fmt: skip

# Below "How to", folded in the menu.
HOW_TO = [
    "how-to/which-client", "how-to/mail-after-commit", "how-to/api-limits", "how-to/import-rows",
    "how-to/one-job-for-many-saves", "how-to/many-jobs-in-one-call", "how-to/polling-view", "how-to/import-export",
    "how-to/wagtail", "how-to/django-tenants", "how-to/test-it", "how-to/rename-a-task", "how-to/upgrade",
    "how-to/run-workers", "how-to/how-many-workers", "how-to/autoscale", "how-to/get-paged",
    "how-to/when-redis-dies", "how-to/size-redis", "how-to/several-projects", "how-to/secrets",
]  # fmt: skip

# Pages that are made of the code.
REFERENCE = {"site/commands": reference.commands, "site/metrics": reference.metrics, "site/keys": reference.keys}

project = "django_rtq"
author = "django_rtq contributors"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
FOR_CONTRIBUTORS = DOCS / "contributing"  # no pages of the site
exclude_patterns = [FOR_CONTRIBUTORS.name]

myst_heading_anchors = 4  # the anchors that links in the pages use
myst_url_schemes = {"http": None, "https": None, "source": "{{path}}"}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "django_rtq"
html_copy_source = False  # Markdown is written beside each page instead
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
html_theme_options = {"top_of_page_buttons": []}
html_static_path = ["static"]
html_css_files = ["site.css"]


def add_reference(app, docname, source):
    source[0] = with_reference(docname, source[0])


def with_reference(docname, text):
    """A page with what is made of the code for it."""
    return text + "\n" + REFERENCE[docname]() if docname in REFERENCE else text


def add_navigation(app, docname, source):
    """Give two pages their parts of the menu. In the Markdown file a menu would be read as code."""
    menus = {root_doc: NAVIGATION, "how-to/index": {"": HOW_TO}}
    for caption, pages in menus.get(docname, {}).items():
        options = f":hidden:\n:caption: {caption}\n\n" if caption else ":hidden:\n\n"
        source[0] += f"\n\n```{{toctree}}\n{options}" + "\n".join(f"/{page}" for page in pages) + "\n```\n"


def begin_with_readme(app, docname, source):
    """Begin the site as the README begins: what it is, the first example, and where to read on. docs/index.md lists all
    pages, as the menu does here."""
    if docname == root_doc:
        text = (DOCS.parent / "README.md").read_text()
        places = text[text.index("## Where to read on") : text.index("[All pages]")]
        text = text[: text.index("## With django.tasks")] + places
        for image in re.findall(r'"docs/(images/[^"]+)"', text):
            (app.outdir / image).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(DOCS / image, app.outdir / image)
        source[0] = text.replace('"docs/', '"').replace("](docs/", "](")


def hide_fields(app, what, name, obj, options, signature, return_annotation):
    """Show no parameters of a class: users get its objects, they do not make them."""
    return ("", None) if what == "class" else None


def link_sources(app, docname, source):
    source[0] = with_copies(app, docname, source[0], scheme="source:")


def with_copies(app, docname, text, scheme=""):
    """Let links to files that are no pages, as tests and the changelog, lead to copies of them as plain text."""
    page = DOCS / f"{docname}.md"

    def copied(match):
        file = (page.parent / match[1]).resolve()
        if not file.is_file() or (file.is_relative_to(DOCS) and not file.is_relative_to(FOR_CONTRIBUTORS)):
            return match[0]
        copy = Path("source", f"{file.relative_to(DOCS.parent)}.txt")
        (app.outdir / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, app.outdir / copy)
        return f"]({scheme}{'../' * docname.count('/')}{copy})"

    return re.sub(r"\]\(([^):#]+)(?:#[^)]*)?\)", copied, text)


def shorten(app, pagename, templatename, context, doctree):
    """Remove what no style sheet uses. It was a fifth of the long pages."""
    body = re.sub(r'<span class="pre">([^<]*)</span>', r"\1", context.get("body", ""))
    body = re.sub(r'<span class="[npw]">([^<]*)</span>', r"\1", body)  # in code: the colour of plain text
    body = body.replace("docutils literal notranslate", "literal").replace(' class="row-odd"', "")
    body = re.sub(r"<td><p>((?:(?!</?p>|</td>).)*)</p></td>", r"<td>\1</td>", body, flags=re.S)
    body = re.sub(r"~(?=[A-Z])", "", body) if pagename.startswith("site/") else body  # as Python writes a ParamSpec
    context["body"] = body.replace(' class="row-even"', "")


# What axe finds in the pages: landmarks without a name, captions without a level, heads of columns without a text, and
# code and tables that scroll and cannot be reached with the keyboard.
ACCESSIBLE = {
    '<aside class="sidebar-drawer"': '<aside class="sidebar-drawer" aria-label="All pages"',
    '<aside class="toc-drawer"': '<aside class="toc-drawer" aria-label="On this page"',
    '<p class="caption" role="heading"': '<p class="caption" role="heading" aria-level="2"',
    '<th class="head"><p></p></th>': "<td></td>",
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}


def make_accessible(app, error):
    for page in [] if error else app.outdir.rglob("*.html"):
        text = page.read_text()
        for old, new in ACCESSIBLE.items():
            text = text.replace(old, new)
        page.write_text(text)


def link_markdown(app, pagename, templatename, context, doctree):
    """Tell readers that are programs where the Markdown of a page is."""
    if (DOCS / f"{pagename}.md").exists():
        name = pagename.rsplit("/", 1)[-1]
        context["metatags"] += f'<link rel="alternate" type="text/markdown" href="{name}.md">'


def write_markdown(app, error):
    """Copy the Markdown of each page beside it, and list the pages in llms.txt."""
    if error:
        return
    lines = ["# django_rtq", "", f"> {first_sentence('index')}", ""]
    for caption, pages in {"Start": [root_doc], **NAVIGATION, "How to …": HOW_TO}.items():
        lines += [f"## {caption}", ""]
        for page in pages:
            if (DOCS / f"{page}.md").exists():
                (app.outdir / page).parent.mkdir(exist_ok=True)
                markdown = with_copies(app, page, with_reference(page, (DOCS / f"{page}.md").read_text()))
                (app.outdir / f"{page}.md").write_text(markdown)
                lines.append(f"- [{title(page)}]({page}.md): {first_sentence(page)}")
        lines.append("")
    (app.outdir / "llms.txt").write_text("\n".join(lines))


def title(page):
    return re.search(r"^# (.*)$", (DOCS / f"{page}.md").read_text(), re.M)[1]


def first_sentence(page):
    """The first sentence of the first paragraph, without links."""
    paragraph = next(
        text
        for text in re.sub(r"```.*?```", "", (DOCS / f"{page}.md").read_text(), flags=re.S).split("\n\n")
        if text.strip() and not text.lstrip().startswith(("#", "<", "!", "`", "|", "@"))
    )
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    return re.split(r"(?<=[.?]) ", text)[0]


def setup(app):
    app.connect("source-read", begin_with_readme)
    app.connect("source-read", add_reference)
    app.connect("source-read", add_navigation)
    app.connect("source-read", link_sources)
    app.connect("autodoc-process-signature", hide_fields)
    app.connect("html-page-context", shorten)
    app.connect("html-page-context", link_markdown)
    app.connect("build-finished", write_markdown)
    app.connect("build-finished", make_accessible)
