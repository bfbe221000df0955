"""What MkDocs puts on the site beside the pages of docs/: see `mkdocs.yml`.

Pages link to files by their place in the repository, so that links work for those who read it there. Here such links
become links within the site. Results, the changelog and other pages outside docs/ become pages of the site; any other
file that is linked (source, examples) becomes a listing under source/. Tutorials are notebooks, shown with the outputs
that are stored in them.
"""

import base64
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[2]
ROOMS = ("environments", "networks", "sharing", "learners", "training", "experiments", "reports", "viewer", "cli")
OUTSIDE = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
LANGUAGES = {".py": "python", ".js": "javascript", ".json": "json", ".jsonl": "json", ".toml": "toml", ".yml": "yaml"}
# [text](target), ![picture](target) and [name]: target; a target ends at white space, `)` or `#`
LINK = re.compile(r"(\]\(|^\[[^\]]+\]:[ ]+)([^)\s#]+)", flags=re.MULTILINE)
FENCE = re.compile(r"^(?P<fence>[ ]*```+).*?^(?P=fence)\s*$", flags=re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the parts of the navigation that follow from what is there."""
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    parts = {
        "Results": ["results/README.md", *_results_nav()],
        "Decisions": [path.relative_to(ROOT / "docs").as_posix() for path in decisions],
        "API": [{"The rooms of the code": [_room_page(room) for room in ROOMS]}],
    }
    _extend(config.nav, parts)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add results, tutorials, the reference of each room, and listings of the files that pages link to."""
    for path in _results():
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    for name, uri in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    for notebook in sorted((ROOT / "docs").rglob("*.ipynb")):
        for file in _tutorial(config, notebook):
            files.append(file)
    for room in ROOMS:
        files.append(File.generated(config, _room_page(room), content=_room(room)))
    for path in sorted(_linked_sources(files)):
        files.append(File.generated(config, _listing_page(path), content=_listing(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to places in the repository into links within the site."""
    del config, files
    here = page.file.src_uri

    def turned(target: str) -> str:
        path = _repository_path(here, target)
        return target if path is None else posixpath.relpath(_site_uri(path), posixpath.dirname(here))

    return _with_links(markdown, turned)


def _extend(nav: list[Any], parts: dict[str, list[Any]]) -> None:
    for entry in nav:
        if isinstance(entry, dict):
            for name, below in entry.items():
                if isinstance(below, list):
                    below += parts.get(name, [])
                    _extend(below, parts)


def _results_nav() -> Iterator[Any]:
    """Yield each folder of results: its only page, or a section of all its pages, which is named after the first."""
    for readme in sorted(ROOT.glob("results/*/README.md")):
        others = sorted(path for path in readme.parent.glob("*.md") if path != readme)
        first, *rest = (path.relative_to(ROOT).as_posix() for path in (readme, *others))
        title = readme.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        yield {title: [first, *rest]} if rest else first


def _results() -> Iterator[Path]:
    """Yield pages of results and their pictures."""
    yield from sorted(path for kind in ("*.md", "*.png", "*.svg") for path in ROOT.glob(f"results/**/{kind}"))


def _with_links(markdown: str, turned: Callable[[str], str]) -> str:
    """Return the page with every link outside code turned."""
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [_turn_all(markdown[end : fence.start()], turned), fence.group()]
        end = fence.end()
    return "".join([*parts, _turn_all(markdown[end:], turned)])


def _turn_all(text: str, turned: Callable[[str], str]) -> str:
    return LINK.sub(lambda found: found[1] + turned(found[2]), text)


def _repository_path(here: str, target: str) -> PurePosixPath | None:
    """Return what a page's link means in the repository, or None for other sites and for places in the same page."""
    if "://" in target or target.startswith(("mailto:", "/")) or here.startswith(("source/", "reference/rooms/")):
        return None
    home = posixpath.dirname(_repository_place(here))
    return PurePosixPath(posixpath.normpath(posixpath.join(home, target)))


def _repository_place(uri: str) -> str:
    """Return where in the repository a page of the site comes from."""
    outside = {page: name for name, page in OUTSIDE.items()}
    return outside.get(uri) or (uri if uri.startswith("results/") else f"docs/{uri}")


def _site_uri(path: PurePosixPath) -> str:
    """Return where on the site a file of the repository is."""
    if (ROOT / path).is_dir():
        path /= "README.md"
    text = path.as_posix()
    if text in OUTSIDE:
        return OUTSIDE[text]
    if text == "README.md":
        return text  # the start page says the same
    if text.startswith("docs/"):
        return text.removeprefix("docs/").replace(".ipynb", ".md")
    if text.startswith("results/") and path.suffix in (".md", ".png", ".svg"):
        return text
    return _listing_page(path)


def _linked_sources(files: Files) -> set[PurePosixPath]:
    """Return the files outside the site that its pages link to."""
    found: set[PurePosixPath] = set()

    def note(target: str) -> str:
        path = _repository_path(file.src_uri, target)
        if path is not None and _site_uri(path).startswith("source/"):
            if not (ROOT / path).is_file():
                raise PluginError(f"{_repository_place(file.src_uri)} links to {target}, which is not there")
            found.add(path)
        return target

    for file in files.documentation_pages():
        _with_links(file.content_string, note)
    return found


def _listing_page(path: PurePosixPath) -> str:
    return f"source/{path}.md"


def _listing(path: PurePosixPath) -> str:
    """Return a page that shows a file; searches leave it out, as the reference has the same."""
    text = (ROOT / path).read_text(encoding="utf-8")
    language = LANGUAGES.get(path.suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n`````{language}\n{text}`````\n"


def _room_page(room: str) -> str:
    return f"reference/rooms/{room}.md"


def _room(room: str) -> str:
    """Return the reference of all modules of a room."""
    modules = []
    for path in sorted((ROOT / "src" / "consmarl" / room).rglob("*.py")):
        words = path.relative_to(ROOT / "src").with_suffix("").parts
        if not words[-1].startswith("_"):
            modules.append(".".join(words))
    entries = (f"::: {module}\n    options:\n      show_root_full_path: true\n" for module in modules)
    less = "---\nsearch:\n  boost: 0.5\n---\n\n"  # guides come first among the results of a search
    return f"{less}# `consmarl.{room}`\n\n" + "\n".join(entries)


def _tutorial(config: MkDocsConfig, notebook: Path) -> Iterator[File]:
    """Yield the page of a notebook and its pictures; the notebook itself stays on the site, to be downloaded."""
    uri = notebook.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
    exporter = MarkdownExporter(template_file=str(Path(__file__).with_name("notebook.md.j2")))
    cells = nbformat.read(notebook, as_version=4)
    animations = _with_animations(cells, notebook.stem)
    text, resources = exporter.from_notebook_node(
        cells, {"unique_key": notebook.stem, "output_files_dir": f"{notebook.stem}-files"}
    )
    title, _, rest = text.strip().partition("\n")
    download = f'<p><a href="{notebook.name}" download>Download this notebook</a></p>'
    yield File.generated(config, uri, content=f"{title}\n\n{download}\n\n{rest}")
    for name, content in (animations | resources.get("outputs", {})).items():
        yield File.generated(config, posixpath.join(posixpath.dirname(uri), name), content=content)


def _with_animations(cells: Any, stem: str) -> dict[str, bytes]:
    """Turn GIFs among the outputs, which nbconvert leaves out, into links; return the files that they lead to."""
    files = {}
    for cell in cells.cells:
        for output in cell.get("outputs", ()):
            if "image/gif" in output.get("data", {}):
                name = f"{stem}-files/animation-{len(files) + 1}.gif"
                files[name] = base64.b64decode(output.data["image/gif"])
                output.data = {"text/markdown": f"![An episode, as an animation]({name})"}
    return files
