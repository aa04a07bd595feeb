"""Renders the pages of docs/ as CommonMark with tables, as GitHub does, and checks the links between the pages."""

import logging
import posixpath

from markdown_it import MarkdownIt
from mkdocs.structure.toc import get_toc

LOG = logging.getLogger("mkdocs.hooks.commonmark")
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

# By the path of a page: the fragments of the headings, and the links to headings as (page, fragment).
fragments = {}
links = {}


def on_pre_build(config):
    fragments.clear()
    links.clear()


def on_page_content(html, page, config, files):
    """Replaces the HTML of the built-in renderer."""
    path = page.file.src_uri
    tokens = MARKDOWN.parse(page.markdown)
    headings = name_headings(tokens)
    fragments[path] = {heading["id"] for heading in headings}
    links[path] = []
    for token in tokens:
        if token.type == "inline":
            for child, end in with_ends(token.children):
                rewrite(child, end, page, files)
    page.toc = get_toc(nested(headings))
    return MARKDOWN.renderer.render(tokens, MARKDOWN.options, {})


def on_env(env, config, files):
    """Runs after the last page. With --strict, each warning fails the build."""
    for path, targets in links.items():
        for target, fragment in targets:
            if fragment not in fragments.get(target, ()):
                LOG.warning("%s: the page %s has no heading #%s", path, target, fragment)


def name_headings(tokens):
    """Gives each heading the id that GitHub gives the heading."""
    headings, counts = [], {}
    for index, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        children = tokens[index + 1].children
        name = "".join(child.content for child in children if child.type in ("text", "code_inline"))
        kept = "".join(c for c in name.strip().lower() if c.isalnum() or c in " -_")
        fragment = kept.replace(" ", "-")
        count = counts.get(fragment, 0)
        counts[fragment] = count + 1
        if count:
            fragment = f"{fragment}-{count}"
        token.attrSet("id", fragment)
        level = int(token.tag[1:])
        headings.append({"level": level, "id": fragment, "name": name, "html": name, "data-toc-label": "", "children": []})
    return headings


def nested(headings):
    """The headings as a tree: each heading below the nearest earlier heading of a higher level."""
    roots, open_headings = [], []
    for heading in headings:
        while open_headings and open_headings[-1]["level"] >= heading["level"]:
            open_headings.pop()
        (open_headings[-1]["children"] if open_headings else roots).append(heading)
        open_headings.append(heading)
    return roots


def with_ends(children):
    """Links and images, each link with the token that ends the link."""
    for index, child in enumerate(children):
        if child.type == "image":
            yield child, None
        elif child.type == "link_open":
            yield child, next(later for later in children[index:] if later.type == "link_close")


def rewrite(token, end, page, files):
    """Points a relative link to the page of the site. A link out of docs/ becomes plain text."""
    attribute = "src" if token.type == "image" else "href"
    address = token.attrGet(attribute)
    if "://" in address or address.startswith("mailto:"):
        return
    path, _, fragment = address.partition("#")
    here = page.file.src_uri
    target = posixpath.normpath(posixpath.join(posixpath.dirname(here), path)) if path else here
    file = files.get_file_from_path(target) or files.get_file_from_path(f"{target}/README.md")
    if file:
        if fragment and file.is_documentation_page():
            links[here].append((file.src_uri, fragment))
        url = file.url_relative_to(page.file) if path else ""
        token.attrSet(attribute, f"{url}#{fragment}" if fragment else url)
        return
    is_folder = any(other.src_uri.startswith(f"{target}/") for other in files)
    if not target.startswith("../") and not is_folder:
        LOG.warning("%s: the link %s leads to no file", here, address)
    elif end:
        token.tag = end.tag = "span"
        token.attrs = {}
