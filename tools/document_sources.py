"""A hook of MkDocs: what documents link to outside docs/ becomes a part of the site.

Documents link to sources by their paths (`../kvstore_ext/errors.py`), as they are read in the
repository. Here every file that is linked to becomes a page below source/, and links lead there.
"""
from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Iterator

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS, SOURCE = "docs/", "source/"
FENCE = "`" * 6

# [text](target#anchor) and [name]: target#anchor, but nothing with a scheme.
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )(?!\w+:|#)([^)#\s]+)", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for every file that is linked to from a page, and from what that links to."""
    waiting = {DOCS + file.src_uri for file in files.documentation_pages()}
    waiting |= {"CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if not path.startswith(DOCS):
            text = page_of(path)
            files.append(File.generated(config, page_uri(path), content=text))
        if path.endswith(".md"):
            found = set(linked(path)) - seen
            waiting |= found
            seen |= found
    return files


def on_page_markdown(markdown: str, page: Any, **others: Any) -> str:
    """Turns links to files into links to their pages."""
    uri = page.file.src_uri
    if uri.startswith(SOURCE) and not (ROOT / uri[len(SOURCE):]).exists():
        return markdown  # a file's text
    path = uri[len(SOURCE):] if uri.startswith(SOURCE) else DOCS + uri

    def turn(match: re.Match[str]) -> str:
        target = page_uri(resolve(path, match.group(2)))
        return match.group(1) + os.path.relpath(target, os.path.dirname(uri))

    return LINK.sub(turn, markdown)


def linked(path: str) -> Iterator[str]:
    """Paths that the document at `path` links to; those that do not exist MkDocs complains of."""
    for match in LINK.finditer((ROOT / path).read_text(encoding="utf-8")):
        target = resolve(path, match.group(2))
        if (ROOT / target).exists() and not target.startswith(DOCS):
            yield target


def resolve(path: str, target: str) -> str:
    """A link's target, from the repository's root."""
    return os.path.normpath(os.path.join(os.path.dirname(path), target))


def page_uri(path: str) -> str:
    """Where MkDocs finds the page of a file of the repository."""
    if path.startswith(DOCS):
        return path[len(DOCS):]
    return f"{SOURCE}{path}" if path.endswith(".md") else f"{SOURCE}{path}.md"


def page_of(path: str) -> str:
    """The page's text: of a document itself, of a directory its files, of code what it says."""
    if path.endswith(".md"):
        return (ROOT / path).read_text(encoding="utf-8")
    head = f"---\nsearch: {{exclude: true}}\n---\n# {path}\n\n"
    if (ROOT / path).is_dir():
        names = sorted(entry.name for entry in (ROOT / path).iterdir() if entry.is_file())
        return head + "\n".join(f"- `{name}`" for name in names)
    language = {".py": "python", ".pyi": "python", ".h": "cpp", ".cc": "cpp"}.get(
        Path(path).suffix, "text")
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"{head}{FENCE}{language}\n{text}\n{FENCE}\n"
