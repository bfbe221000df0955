"""Names in untrusted files are shown as plain text: in the report, in the viewer and in the terminal."""

import html.parser
import json
import re
from pathlib import Path

import pytest

import consmarl
from consmarl.cli import main
from tests.reports.handmade import evaluated
from tests.security import hostile

HARM = "document.title='PWNED'"
MARKUP = f"""</script><script>{HARM}</script><img src=x onerror="{HARM}">"'><svg onload={HARM}>[/b]{{{{7*7}}}}"""
PLAIN = re.sub(r"[^\w ]", "x", MARKUP)


class Elements(html.parser.HTMLParser):
    """Collects the elements of a page, and every attribute that would run something."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.handlers = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.handlers += [value for name, value in attributes if name.startswith("on")]
        self.handlers += [value for _, value in attributes if (value or "").lstrip().lower().startswith("javascript:")]


def run_called(directory, *, name, **others):
    """A finished run in which everything that can be named has this name."""
    rows = evaluated([0.0, 1.0], every=8, counter=name)
    run = hostile.write_run(
        directory, env=f"pettingzoo:{name}", set=[f"x={name}"], label=name, episodes=8, preset="paper", sharing=None,
        rows=rows, **others,
    )  # fmt: skip
    facts = json.loads((run / "run.json").read_text())
    session = facts["sessions"][0]
    session["command"] = session["started"] = name
    session["versions"] = dict.fromkeys(session["versions"], name) | {name: name}
    session["machine"] |= {"system": name, "processor": name}
    hostile.write_json(run / "run.json", facts)
    described = json.loads((run / "config.json").read_text())
    hostile.write_record(run, described)
    return run


@pytest.fixture
def pages(tmp_path, monkeypatch, capsys):
    """Return a function that writes a report and a viewer page for runs with the given name."""
    monkeypatch.chdir(tmp_path)

    def pages(name, title):
        folder = Path("a " + name.replace("/", "_")[:100])
        (tmp_path / title).mkdir()
        monkeypatch.chdir(tmp_path / title)
        run_called(folder, name=name)
        run_called(Path("other"), name=name, seed=1, method="vdn")
        hostile.write_run(Path("failed"), env=f"pettingzoo:{name}", seed=2, label=name, failure=name, episodes=8)
        assert main(["report", ".", "--title", name, "--out", "report.html"]) == 0
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        view = consmarl.view([folder, Path("other")], Path("view.html"))
        return Path("report.html").absolute(), view.absolute()

    return pages


def test_names_appear_as_plain_text_in_pages(pages):
    """Pages of runs with hostile names have exactly the same elements as pages of other runs."""
    for page, other in zip(pages(MARKUP, "hostile"), pages(PLAIN, "plain"), strict=True):
        ours, theirs = (Elements(path.read_text(encoding="utf-8")) for path in (page, other))
        assert ours.tags == theirs.tags
        assert ours.handlers == theirs.handlers
        text = page.read_text(encoding="utf-8")
        assert f"<script>{HARM}" not in text
        assert "PWNED" in text, "the names are there"
        assert "{{7*7}}" in text.replace("&#123;", "{"), "names are not templates"


def test_names_run_no_script_in_a_browser(pages, open_page):
    for path in pages(MARKUP, "hostile"):
        page = open_page(path.as_uri())
        for key in ("Tab", "ArrowRight", "End", "Home"):
            page.keyboard.press(key)
        page.evaluate("document.querySelectorAll('button, summary, input').forEach(each => each.click())")
        page.mouse.move(500, 400)
        page.wait_for_timeout(100)
        assert page.title() not in ("", "PWNED")
        assert page.locator("img[src=x]").count() == 0
