// The page stands without this: it adds what pointing, choosing and hiding can tell. theme.js comes before it.
const SIDE = 1000;

// Values come rounded to what is shown of them, so these are the statistics' own numbers.
function shown(value, decimals) {
  if (value === null || value === undefined) return "–";
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return value.toLocaleString("en-US", digits).replace("-", "−");
}

function nearest(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle; else high = middle;
  }
  return value - sorted[low] <= sorted[high] - value ? low : high;
}

class Figure {
  constructor(element, data) {
    Object.assign(this, { element, data, chartNumber: 0, view: Object.keys(data.charts[0].views)[0], at: null });
    this.hidden = new Set();
    this.plot = element.querySelector("[data-plot]");
    this.tooltip = element.querySelector(".tooltip");
    this.markViews();
    this.indexEpisodes();
    this.listen();
  }

  get chart() { return this.data.charts[this.chartNumber]; }
  get axes() { return [this.data.x, this.chart.views[this.view].y]; }

  indexEpisodes() {
    const all = new Set(this.chart.series.flatMap((series) => this.data.episodes[series.x]));
    this.episodes = [...all].sort((left, right) => left - right);
    this.placeOf = this.data.episodes.map((episodes) => new Map(episodes.map((episode, place) => [episode, place])));
  }

  listen() {
    const plot = this.plot;
    for (const kind of ["pointermove", "pointerdown"]) plot.addEventListener(kind, (event) => this.point(event));
    this.tooltip.addEventListener("pointerdown", (event) => { event.stopPropagation(); this.leave(); });
    document.addEventListener("pointerdown", (event) => { if (!plot.contains(event.target)) this.leave(); });
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") this.leave(); });
    plot.addEventListener("blur", () => this.leave());
    plot.addEventListener("keydown", (event) => this.step(event));
    for (const button of this.element.querySelectorAll("[data-group].legend-entry")) {
      button.addEventListener("click", () => this.toggle(Number(button.dataset.group), button));
    }
    for (const button of this.element.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.choose(this.chartNumber, button.dataset.view));
    }
    const select = this.element.querySelector("[data-metric]");
    if (select) select.addEventListener("change", () => this.choose(Number(select.value), this.view));
  }

  choose(chartNumber, wanted) {
    const views = this.data.charts[chartNumber].views;
    const view = wanted in views ? wanted : Object.keys(views)[0];
    Object.assign(this, { chartNumber, view });
    this.markViews();
    this.indexEpisodes();
    this.draw();
    this.leave();
  }

  markViews() {
    for (const button of this.element.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === this.view));
      button.disabled = !(button.dataset.view in this.chart.views);
    }
  }

  draw() {
    const { title, family, series, views } = this.chart;
    const [x, y] = this.axes;
    const view = views[this.view];
    this.element.querySelector("[data-title]").replaceChildren(title + " ", make("span", {}, family));
    this.element.querySelector(".canvas").setAttribute("aria-label", view.says);
    this.element.querySelector(".grid").replaceChildren(...this.grid(x, y));
    this.element.querySelector(".curves").replaceChildren(...series.map((each) => this.curve(each)));
    const places = new Map(series.map((each, number) => [each.group, view.ends[number]]));
    for (const label of this.element.querySelectorAll(".ends text")) {
      const place = places.get(Number(label.dataset.group));
      label.style.display = place === undefined ? "none" : "";
      if (place !== undefined) label.setAttribute("y", 100 * (1 - place) + "%");
    }
    this.hide();
  }

  grid([left, right, columns], [low, high, rows]) {
    const nodes = [];
    for (const [value, label] of rows) {
      const place = 100 * (1 - (value - low) / (high - low)) + "%";
      nodes.push(make("line", { x1: 0, x2: "100%", y1: place, y2: place }));
      nodes.push(make("text", { class: "y", x: -8, y: place, dy: "0.35em" }, label));
    }
    for (const [value, label] of columns) {
      const place = 100 * (value - left) / (right - left) + "%";
      nodes.push(make("text", { class: "x", x: place, y: "100%", dy: "1.6em" }, label));
    }
    return [...nodes, make("line", { class: "ground", x1: 0, x2: "100%", y1: "100%", y2: "100%" })];
  }

  curve(series) {
    const [estimate, low, high] = series.bands[this.view];
    const group = make("g", { class: "s" + this.data.styles[series.group], "data-group": series.group });
    if (low) group.append(make("path", { class: "band", d: this.area(series.x, low, high) }));
    group.append(make("path", { class: "line", d: this.line(series.x, estimate) }));
    return group;
  }

  place(episode, value) {
    const [[left, right], [low, high]] = this.axes;
    const across = SIDE * (episode - left) / (right - left), up = SIDE * (1 - (value - low) / (high - low));
    return across.toFixed(1) + "," + up.toFixed(1);
  }

  line(x, values) {
    let path = "", isBroken = true;
    values.forEach((value, number) => {
      if (value === null) { isBroken = true; return; }
      const point = this.place(this.data.episodes[x][number], value);
      path += isBroken ? "M" + point + "h0" : "L" + point;
      isBroken = false;
    });
    return path;
  }

  area(x, low, high) {
    const episodes = this.data.episodes[x];
    let path = "", there = [], back = [];
    for (let number = 0; number <= episodes.length; number++) {
      const isKnown = number < episodes.length && low[number] !== null && high[number] !== null;
      if (isKnown) {
        there.push(this.place(episodes[number], high[number]));
        back.unshift(this.place(episodes[number], low[number]));
      } else if (there.length) {
        path += "M" + [...there, ...back].join("L") + "Z";
        there = [];
        back = [];
      }
    }
    return path;
  }

  toggle(group, button) {
    if (!this.hidden.delete(group)) this.hidden.add(group);
    button.setAttribute("aria-pressed", String(!this.hidden.has(group)));
    this.hide();
    if (this.at !== null) this.show(this.at);
  }

  hide() {
    for (const node of this.element.querySelectorAll(".curves [data-group], .ends [data-group]")) {
      node.toggleAttribute("hidden", this.hidden.has(Number(node.dataset.group)));
    }
  }

  point(event) {
    if (this.tooltip.contains(event.target)) return;
    const box = this.plot.getBoundingClientRect();
    const [left, right] = this.data.x;
    const episode = left + (event.clientX - box.left) / box.width * (right - left);
    this.show(nearest(this.episodes, episode));
  }

  step(event) {
    const last = this.episodes.length - 1, now = this.at === null ? last : this.at;
    const leap = Math.max(1, Math.round(last / 20));
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageDown: now - leap, PageUp: now + leap, Home: 0, End: last };
    if (event.key === "Escape") this.leave();
    if (!(event.key in to)) return;
    event.preventDefault();
    this.show(this.at === null && event.key.startsWith("Arrow") ? last : Math.min(last, Math.max(0, to[event.key])));
  }

  leave() {
    this.at = null;
    this.tooltip.hidden = true;
    this.element.querySelector(".marks").replaceChildren();
  }

  show(at) {
    this.at = at;
    const episode = this.episodes[at], [x, y] = this.axes;
    const across = 100 * (episode - x[0]) / (x[1] - x[0]) + "%";
    const marks = [make("line", { x1: across, x2: across, y1: 0, y2: "100%" })], rows = [];
    for (const series of this.chart.series) {
      if (this.hidden.has(series.group)) continue;
      const place = this.placeOf[series.x].get(episode);
      const [estimate, low, high] = series.bands[this.view].map((each) => each && place !== undefined ? each[place] : null);
      const style = "s" + this.data.styles[series.group];
      if (estimate !== null) {
        const up = 100 * (1 - (estimate - y[0]) / (y[1] - y[0])) + "%";
        marks.push(make("circle", { class: style, cx: across, cy: up, r: 4.5 }));
      }
      rows.push({ series, style, estimate, low, high });
    }
    rows.sort((left, right) => (right.estimate ?? -Infinity) - (left.estimate ?? -Infinity));
    this.element.querySelector(".marks").replaceChildren(...marks);
    this.tooltip.replaceChildren(make("b", {}, "Episode " + shown(episode, 0)), ...rows.map((row) => this.row(row)));
    this.tooltip.hidden = false;
    this.moveTooltip((episode - x[0]) / (x[1] - x[0]));
  }

  row({ series, style, estimate, low, high }) {
    const { decimals } = this.chart;
    const swatch = make("svg", { class: "swatch " + style }, make("line", { x1: 0, x2: "100%", y1: "50%", y2: "50%" }));
    const value = make("span", { class: "value" }, make("strong", {}, shown(estimate, decimals)));
    if (low !== null) value.append(make("span", { class: "bounds" }, ` [${shown(low, decimals)}, ${shown(high, decimals)}]`));
    return make("div", {}, swatch, make("span", {}, this.data.labels[series.group]), value);
  }

  moveTooltip(share) {
    const room = this.plot.clientWidth, width = this.tooltip.offsetWidth, across = share * room;
    const beside = across > room / 2 ? across - width - 14 : across + 14;
    this.tooltip.style.left = Math.max(-32, Math.min(room - width + 8, beside)) + "px";
  }
}

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
      getSelection().selectAllChildren(code); // the clipboard may be out of bounds: then it is a keystroke away
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
    source.remove(); // from here on the button decides
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
