"""The pages follow their rules: a short README, one word for one thing, messages quoted correctly."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", flags=re.DOTALL)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("results/**/*.md")) + PAGES, ids=lambda page: str(page.relative_to(ROOT))
)
def test_no_page_has_a_gap_that_was_to_be_filled_in(page):
    gaps = re.findall(r"@@\S*@@|\b(?:TODO|FIXME|XXX|TBD)\b", page.read_text(encoding="utf-8"))
    assert gaps == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_say_environment_and_not_world(page):
    prose = CODE.sub("", page.read_text(encoding="utf-8"))
    # the architecture page may explain the word that the code uses
    prose = prose.replace("an environment is called a *world*", "")
    assert re.findall(r"\bworlds?\b", prose, flags=re.IGNORECASE) == []


def _messages():
    """Yield every string in the source except docstrings; for an f-string, its constant parts joined by "…"."""
    for path in (ROOT / "src").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if node in docstrings:
                continue
            if isinstance(node, ast.JoinedStr):
                yield "…".join(each.value for each in node.values if isinstance(each, ast.Constant))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_messages_quoted_in_the_faq_exist_in_the_code():
    text = (ROOT / "docs" / "guide" / "faq.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^### `(.+)`$", text, flags=re.MULTILINE)
    assert len(quoted) > 10
    messages = list(_messages())
    for message in quoted:
        parts = [part.strip() for part in message.split("…") if len(part.strip()) > 6]
        assert parts
        for part in parts:
            assert any(part in each for each in messages), f"the FAQ quotes {part!r}, which no message contains"


def test_stored_pictures_of_an_exchange_match_the_equations(tmp_path, monkeypatch):
    import importlib.util

    script = ROOT / "docs" / "make_cons_pictures.py"
    spec = importlib.util.spec_from_file_location("make_cons_pictures", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "IMAGES", tmp_path)
    module.main()
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(path.name for path in (ROOT / "docs" / "images").glob("cons-*.svg"))
    for name in written:
        drawn, stored = ((folder / name).read_text() for folder in (tmp_path, ROOT / "docs" / "images"))
        numbers = [[float(number) for number in re.findall(r"\d+\.\d+", svg)] for svg in (drawn, stored)]
        assert re.sub(r"\d+\.\d+", "", drawn) == re.sub(r"\d+\.\d+", "", stored), f"run {script.name}"
        assert numbers[0] == pytest.approx(numbers[1], abs=0.11), f"run {script.name}"  # rounding differs by machine
