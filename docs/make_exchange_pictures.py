"""Take the pictures of reading-an-exchange.md from its run: `.venv/bin/python docs/make_exchange_pictures.py RUN`.

Takes playwright and a Chromium, which the development install and most systems have.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import consmarl

IMAGES = Path(__file__).parent / "images"
EPISODE, STEP, END, STUDENT = "s19", 12, 22, 0
WIDTH, MARGIN = 1240, 8


def clip_around(page: Any, *selectors: str) -> dict[str, float]:
    """Return the part of the page that holds all these elements."""
    boxes = [page.locator(selector).nth(place).bounding_box() for selector in selectors
             for place in range(page.locator(selector).count())]  # fmt: skip
    left, top = (min(box[side] for box in boxes) - MARGIN for side in ("x", "y"))
    right = max(box["x"] + box["width"] for box in boxes) + MARGIN
    bottom = max(box["y"] + box["height"] for box in boxes) + MARGIN
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def main(run: Path) -> None:
    """Write the page, and take its pictures."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as starter:
        page_file = consmarl.view(run, Path(directory) / "exchange.html", staged=20, without_sharing=True)
        browser = starter.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, step, runs, parts in (
            ("exchange", STEP, "0", (".transport", ".world", ".exchange")),
            ("exchange-after", END, "both", (".transport", ".run-name", ".world")),
        ):
            page = browser.new_page(viewport={"width": WIDTH, "height": 2400}, device_scale_factor=1.5)
            page.goto(f"{page_file.as_uri()}#episode={EPISODE}&step={step}&agent={STUDENT}&runs={runs}")
            page.wait_for_selector("html[data-drawn]")
            page.wait_for_timeout(500)  # until agents have come to rest
            path = IMAGES / f"{name}.png"
            page.screenshot(path=path, clip=clip_around(page, *parts))
            Image.open(path).quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
