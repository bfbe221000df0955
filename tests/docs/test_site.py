"""The site builds without a warning, loads nothing from other sites, and can be searched and read on a phone."""

import functools
import html.parser
import http.server
import json
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Loaded(html.parser.HTMLParser):
    """Collects what a page loads by itself: scripts, styles, pictures, frames."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(given.get("src") or "")
        if tag == "link" and given.get("rel") != "canonical":
            self.addresses.append(given.get("href") or "")


def test_pages_load_nothing_from_other_sites(site):
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert [each for each in loaded.addresses if each.startswith(("http:", "https:", "//"))] == [], page
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8"), style


def test_the_site_includes_pages_from_outside_docs(site):
    for page in ("changelog.html", "security.html", "contributing.html", "results/index.html"):
        assert (site / page).is_file()
    for path in ROOT.glob("results/*/README.md"):
        assert (site / path.parent.relative_to(ROOT) / "index.html").is_file()
    listing = (site / "source" / "src" / "consmarl" / "sharing" / "equations.py.html").read_text(encoding="utf-8")
    assert "asking_probability" in listing


def test_the_reference_covers_every_public_name(site):
    import consmarl

    text = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    missing = [name for name in consmarl.__all__ if f">{name}<" not in text and f"consmarl.{name}" not in text]
    assert missing == ["__version__"]


def test_tutorials_are_shown_with_their_outputs(site):
    for notebook in (ROOT / "docs" / "tutorials").glob("*.ipynb"):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        page = (site / "tutorials" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        outputs = [each for cell in cells if cell["cell_type"] == "code" for each in cell["outputs"]]
        pictures = [each for each in outputs if {"image/png", "image/gif"} & set(each.get("data", ()))]
        assert outputs
        assert page.count("<img") >= len(pictures) > 0
        assert f'href="{notebook.name}"' in page  # a link for downloading it


@pytest.fixture
def address(site):
    """The address of a server that serves the site."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(("width", "is_file"), [(390, False), (1280, False), (1280, True)])
def test_the_site_can_be_searched_on_a_server_and_from_a_folder(browser, site, address, width, is_file):
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(f"{site.as_uri() if is_file else address}/guide/faq.html")
    page.click("label.md-header__button[for=__search]" if width == 390 else "input.md-search__input")
    page.keyboard.type("prestige")
    page.wait_for_selector(".md-search-result__item h1:has-text('CONS in pictures')", timeout=60_000, state="attached")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_a_phone(browser, address, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    for name in (
        "index",
        "guide/presets",
        "guide/worlds",
        "methods/cons",
        "reference/sharing",
        "results/methods/index",
    ):
        page.goto(f"{address}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    page.close()
    assert faults == []
