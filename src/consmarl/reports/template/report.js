// The page works without this script: it adds sorting, copying and playing. theme.js and figure.js come before it.
function setUpSorting(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = make("button", { type: "button" }, ...head.childNodes);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const isRising = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isRising ? "ascending" : "descending");
      body.append(...[...body.rows].sort((left, right) => compareCells(left.cells[column], right.cells[column], isRising)));
    });
  });
}

function compareCells(left, right, isRising) {
  const sign = isRising ? 1 : -1;
  if (!("value" in left.dataset)) return sign * left.textContent.localeCompare(right.textContent, "en", { numeric: true });
  if (!left.dataset.value || !right.dataset.value) return Number(!left.dataset.value) - Number(!right.dataset.value);
  return sign * (Number(left.dataset.value) - Number(right.dataset.value));
}

function setUpCopying(button) {
  const code = button.closest(".command").querySelector("code");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // the clipboard may be blocked: the text is then selected, ready to copy
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
}

function setUpPlaying(button) {
  const figure = button.closest("figure"), image = figure.querySelector("img"), source = figure.querySelector("source");
  const moving = image.src, still = source.srcset;
  let isPlaying = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  const set = () => {
    source.remove(); // from now on the button decides
    image.src = isPlaying ? moving : still;
    button.textContent = isPlaying ? "Pause" : "Play";
  };
  button.addEventListener("click", () => { isPlaying = !isPlaying; set(); });
  set();
}

const data = JSON.parse(document.getElementById("data").textContent);
for (const element of document.querySelectorAll("[data-figure]")) new Figure(element, data[element.dataset.figure]);
document.querySelectorAll("[data-sortable]").forEach(setUpSorting);
document.querySelectorAll("[data-copy]").forEach(setUpCopying);
document.querySelectorAll("[data-play]").forEach(setUpPlaying);
