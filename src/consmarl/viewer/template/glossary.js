// What symbols mean: a note next to each symbol, and a list of all of them.
let openNote = null;

// A symbol as in the paper: what follows an underscore is a subscript.
function symbolNodes(symbol) {
  const [whole, below] = symbol.split("_");
  if (whole === "Γ̃") return [make("span", { class: "tilde" }, "Γ")]; // many fonts draw the tilde through a capital
  return below ? [whole, make("sub", {}, below)] : [whole];
}

function withSymbols(text) {
  return text.split(/([A-Za-zυ]_[a-z]+|Γ̃)/).flatMap((part, place) => (place % 2 ? symbolNodes(part) : [part]));
}

// A symbol that explains itself: on hover by its title, and on click, tap or Enter.
function term(key, run) {
  const { symbol, name, meaning, source } = data.glossary[key], title = `${name}, ${source}: ${meaning}`;
  const button = make("button", {
    type: "button", class: "term", "data-term": key, "data-focus": `term-${key}`, "aria-expanded": "false",
    "aria-label": `${symbol.replace("_", " ")}, ${name}`,
  }, make("abbr", { title }, ...symbolNodes(symbol)));
  button.addEventListener("click", () => {
    const wasOpen = button.getAttribute("aria-expanded") === "true";
    closeNote();
    if (!wasOpen) showNote(button, key, run);
  });
  return button;
}

function showNote(button, key, run) {
  const { symbol, name, meaning, source } = data.glossary[key], value = run.values[key];
  const all = make("button", { type: "button", class: "link" }, "All symbols");
  const note = make("span", { class: "term-note", role: "status" },
    make("b", {}, ...symbolNodes(symbol), ` · ${name}`), make("span", {}, ...withSymbols(meaning)),
    make("span", { class: "term-foot" }, value ? `${source} · ${value} in this run` : source, all));
  all.addEventListener("click", () => { closeNote(); showGlossary(key); });
  button.setAttribute("aria-expanded", "true");
  button.after(note); // so that the next tab stop is the note's button
  openNote = { button, note };
  placeNote();
}

// Below its symbol, or above if there is no room; it follows the symbol when the page scrolls.
function placeNote() {
  if (!openNote) return;
  const { button, note } = openNote;
  const at = button.getBoundingClientRect(), { width, height } = note.getBoundingClientRect(), below = at.bottom + 6;
  note.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  note.style.top = `${below + height <= innerHeight ? below : Math.max(8, at.top - height - 6)}px`;
}

function closeNote() {
  openNote?.note.remove();
  openNote?.button.setAttribute("aria-expanded", "false");
  openNote = null;
}

function showGlossary(key) {
  document.querySelector("[data-help]").open = true;
  const entry = document.getElementById(`symbol-${key}`);
  entry.scrollIntoView({ block: "center" });
  entry.focus({ preventScroll: true });
}

function setUpGlossary() {
  const list = document.querySelector("[data-symbols]");
  for (const [key, { symbol, name, meaning, source }] of Object.entries(data.glossary)) {
    const values = [...new Set(data.runs.map((run) => run.values[key]).filter(Boolean))];
    const told = values.length ? ` Here it is ${listed(values)}.` : "";
    list.append(make("div", { id: `symbol-${key}`, tabindex: -1 }, make("dt", {}, ...symbolNodes(symbol)),
      make("dd", {}, make("b", {}, name), " ", make("small", {}, source), make("br", {}), ...withSymbols(meaning), told)));
  }
  const settings = document.querySelector("[data-settings]");
  const shownOnce = data.runs.filter((run) => run.settings.length && !run.is_silent);
  for (const run of shownOnce) {
    const words = run.settings.map(([name, value]) => `${name}: ${value}`).join(" · ");
    settings.append(make("p", { class: "note" }, shownOnce.length > 1 ? `${run.name}: ${words}` : `Settings of this run: ${words}`));
  }
  document.querySelector("[data-symbols-part]").hidden = !list.childElementCount;
  document.addEventListener("pointerdown", ({ target }) => {
    if (openNote && !openNote.note.contains(target) && !openNote.button.contains(target)) closeNote();
  });
  document.addEventListener("focusin", ({ target }) => {
    if (openNote && !openNote.note.contains(target) && target !== openNote.button) closeNote();
  });
  document.addEventListener("scroll", placeNote, { capture: true, passive: true });
  window.addEventListener("resize", placeNote);
}

// Returns whether there was a note to close.
function leaveNote() {
  const button = openNote?.button;
  closeNote();
  button?.focus({ preventScroll: true });
  return button !== undefined;
}
