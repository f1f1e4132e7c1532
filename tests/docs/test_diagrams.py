"""The diagrams are those that the script draws, can be read by those who do not see them,
and no word leaves its box.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from tests.explorer.browser import needs_chromium
from tests.support.site import browser, served

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs" / "assets"
NAMES = [
    "durable-object-room",
    "layers",
    "life-of-a-message",
    "life-of-a-request",
    "life-of-a-request-upright",
    "one-application",
    "types-to-handlers",
]
OVERFLOWS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg.diagram")) {
    const boxes = [...svg.querySelectorAll("rect:not(.ring)")].map((rect) => rect.getBBox());
    const frame = svg.viewBox.baseVal;
    for (const text of svg.querySelectorAll("text")) {
      const { x, y, width, height } = text.getBBox();
      const within = (box) => x >= box.x && x + width <= box.x + box.width;
      const meets = (box) => x < box.x + box.width && x + width > box.x && y < box.y + box.height && y + height > box.y;
      if (!within(frame) || boxes.some((box) => meets(box) && !within(box))) found.push(text.textContent);
    }
  }
  return found;
}"""


@pytest.fixture(scope="module")
def diagrams() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_diagrams", ROOT / "docs" / "diagrams.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_what_the_script_draws(diagrams: ModuleType) -> None:
    drawn = {made.name: made.svg() for made in (draw() for draw in diagrams.DIAGRAMS)}
    assert sorted(drawn) == NAMES
    for name, svg in drawn.items():
        assert (ASSETS / f"{name}.svg").read_text("utf-8") == svg, "run `python docs/diagrams.py`"
        assert len(re.findall(r"<(title|desc) id=\"[\w-]+\">[^<]{10,}</\1>", svg)) == 2
        assert "#" not in re.sub(r"--d-\w+: #\w+|url\(#|<style>.*?</style>", "", svg, flags=re.DOTALL), name


@pytest.mark.slow
@needs_chromium
def test_every_diagram_is_part_of_a_page_and_its_words_stay_in_their_boxes(site: Path) -> None:
    pages = [page for page in sorted(site.rglob("index.html")) if 'class="diagram"' in page.read_text("utf-8")]
    shown = {name for page in pages for name in NAMES if f'id="{name}-title"' in page.read_text("utf-8")}
    assert sorted(shown) == NAMES
    with served(site) as address, browser() as chromium:
        for width in (1280, 390):  # a narrow page shows the upright drawing of two
            found = chromium.new_page(viewport={"width": width, "height": 900})
            for page in pages:
                found.goto(f"{address}{page.parent.relative_to(site)}/")
                assert found.evaluate(OVERFLOWS) == [], page
