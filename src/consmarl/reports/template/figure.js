// Charts work without this script: it adds tooltips, choices and hiding of groups. theme.js comes before it.
const SIDE = 1000;

// Values arrive rounded to the precision shown.
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

// Formatted as in the tables.
function duration(seconds) {
  if (seconds < 60) return Math.round(seconds) + " s";
  const minutes = Math.floor(Math.round(seconds) / 60), hours = Math.floor(minutes / 60);
  if (minutes < 60) return minutes + " min " + Math.round(seconds) % 60 + " s";
  return hours < 24 ? hours + " h " + minutes % 60 + " min" : Math.floor(hours / 24) + " d " + hours % 24 + " h";
}

const PLACE_WORDS = {
  episodes: (place) => "Episode " + shown(place, 0),
  steps: (place) => shown(place, 0) + " environment steps",
  time: (place) => "After " + duration(place),
};

class Figure {
  constructor(element, data) {
    Object.assign(this, { element, data, chartNumber: 0, view: Object.keys(data.charts[0].views)[0], at: null });
    Object.assign(this, { across: data.across, hasSeeds: false });
    this.hidden = new Set();
    this.plot = element.querySelector("[data-plot]");
    this.tooltip = element.querySelector(".tooltip");
    this.markChoices();
    this.indexPlaces();
    this.listen();
  }

  get chart() { return this.data.charts[this.chartNumber]; }
  get frame() { return this.chart.views[this.view][this.hasSeeds ? "withSeeds" : "frame"]; }
  get axes() { return [this.data.x[this.across], this.frame.y]; }
  placesOf(series) { return this.data.places[series.x[this.across]]; }

  indexPlaces() {
    const all = new Set(this.chart.series.flatMap((series) => this.placesOf(series)));
    this.places = [...all].sort((left, right) => left - right);
  }

  // The point of a series at an x position: groups share episodes, but not how long those took.
  pointAt(series, place) {
    const places = this.placesOf(series), point = nearest(places, place);
    const isThere = this.across === "episodes" ? places[point] === place : place <= places[places.length - 1];
    return isThere ? point : null;
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
      button.addEventListener("click", () => this.choose({ view: button.dataset.view }));
    }
    for (const button of this.element.querySelectorAll("[data-across]")) {
      button.addEventListener("click", () => this.choose({ across: button.dataset.across }));
    }
    const seeds = this.element.querySelector("[data-seeds]");
    if (seeds) seeds.addEventListener("click", () => this.choose({ hasSeeds: !this.hasSeeds }));
    const select = this.element.querySelector("[data-metric]");
    if (select) select.addEventListener("change", () => this.choose({ chartNumber: Number(select.value) }));
    this.element.querySelector("[data-csv]").addEventListener("click", () => this.download());
  }

  choose(wanted) {
    Object.assign(this, wanted);
    const views = this.chart.views;
    if (!(this.view in views)) this.view = Object.keys(views)[0];
    this.markChoices();
    this.indexPlaces();
    this.draw();
    this.leave();
  }

  markChoices() {
    for (const button of this.element.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === this.view));
      button.disabled = !(button.dataset.view in this.chart.views);
    }
    for (const button of this.element.querySelectorAll("[data-across]")) {
      button.setAttribute("aria-pressed", String(button.dataset.across === this.across));
    }
    for (const button of this.element.querySelectorAll("[data-seeds]")) {
      button.setAttribute("aria-pressed", String(this.hasSeeds));
    }
  }

  draw() {
    const { title, family, series, views } = this.chart;
    const [x, y] = this.axes;
    this.element.querySelector("[data-title]").replaceChildren(title + " ", make("span", {}, family));
    this.element.querySelector("[data-axis]").textContent = this.data.titles[this.across];
    this.element.querySelector(".canvas").setAttribute("aria-label", views[this.view].says);
    this.element.querySelector(".grid").replaceChildren(...this.grid(x, y));
    const drawn = series.map((each) => this.curve(each));
    const behind = this.hasSeeds ? series.map((each) => this.seeds(each)) : [];
    this.element.querySelector(".curves").replaceChildren(...behind, ...drawn);
    const places = new Map(series.map((each, number) => [each.group, this.frame.ends[number]]));
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
    const [estimate, low, high] = series.bands[this.view], places = this.placesOf(series);
    const group = make("g", { class: "s" + this.data.styles[series.group], "data-group": series.group });
    if (low) group.append(make("path", { class: "band", d: this.area(places, low, high) }));
    group.append(make("path", { class: "line", d: this.line(places, estimate) }));
    return group;
  }

  seeds(series) {
    const group = make("g", { class: "s" + this.data.styles[series.group], "data-group": series.group });
    if (!series.seeds) return group;
    const places = this.seedPoints(series).map((point) => this.placesOf(series)[point]);
    for (const values of series.seeds.values) group.append(make("path", { class: "seed", d: this.line(places, values) }));
    return group;
  }

  // Lines of single seeds have every n-th point of their group's line, and the last.
  seedPoints(series) {
    const points = this.placesOf(series).map((_, point) => point);
    return points.filter((point) => point % series.seeds.every === 0 || point === points.length - 1);
  }

  place(place, value) {
    const [[left, right], [low, high]] = this.axes;
    const across = SIDE * (place - left) / (right - left), up = SIDE * (1 - (value - low) / (high - low));
    return across.toFixed(1) + "," + up.toFixed(1);
  }

  line(places, values) {
    let path = "", isBroken = true;
    values.forEach((value, number) => {
      if (value === null) { isBroken = true; return; }
      const point = this.place(places[number], value);
      path += isBroken ? "M" + point + "h0" : "L" + point;
      isBroken = false;
    });
    return path;
  }

  area(places, low, high) {
    let path = "", there = [], back = [];
    for (let number = 0; number <= places.length; number++) {
      const isKnown = number < places.length && low[number] !== null && high[number] !== null;
      if (isKnown) {
        there.push(this.place(places[number], high[number]));
        back.unshift(this.place(places[number], low[number]));
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
    const [left, right] = this.axes[0];
    this.show(nearest(this.places, left + (event.clientX - box.left) / box.width * (right - left)));
  }

  step(event) {
    const last = this.places.length - 1, now = this.at === null ? last : this.at;
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
    const place = this.places[at], [x, y] = this.axes;
    const share = (each) => 100 * (each - x[0]) / (x[1] - x[0]) + "%";
    const marks = [make("line", { x1: share(place), x2: share(place), y1: 0, y2: "100%" })], rows = [];
    for (const series of this.chart.series) {
      if (this.hidden.has(series.group)) continue;
      const point = this.pointAt(series, place);
      const [estimate, low, high] = series.bands[this.view].map((each) => each && point !== null ? each[point] : null);
      const style = "s" + this.data.styles[series.group];
      if (estimate !== null) {
        const up = 100 * (1 - (estimate - y[0]) / (y[1] - y[0])) + "%";
        marks.push(make("circle", { class: style, cx: share(this.placesOf(series)[point]), cy: up, r: 4.5 }));
      }
      rows.push({ series, style, estimate, low, high });
    }
    rows.sort((left, right) => (right.estimate ?? -Infinity) - (left.estimate ?? -Infinity));
    this.element.querySelector(".marks").replaceChildren(...marks);
    this.tooltip.replaceChildren(make("b", {}, PLACE_WORDS[this.across](place)), ...rows.map((row) => this.row(row)));
    this.tooltip.hidden = false;
    this.moveTooltip((place - x[0]) / (x[1] - x[0]));
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
  // The chart on screen as CSV: its points as drawn, with a column for each seed.
  csv() {
    const { name, series, views } = this.chart, { x, labels } = this.data;
    const seeds = [...new Set(series.flatMap((each) => each.seeds ? each.seeds.names : []))].sort((left, right) => left - right);
    const statistics = Object.keys(views).flatMap((view) => [view, view + "_low", view + "_high"]);
    const rows = [["metric", "group", ...Object.keys(x).map((each) => CSV_PLACES[each]), ...statistics, ...seeds.map((seed) => "seed_" + seed)]];
    for (const each of series) {
      const along = Object.keys(x).map((across) => this.data.places[each.x[across]]);
      const bands = Object.keys(views).flatMap((view) => each.bands[view]);
      const drawn = each.seeds ? new Map(this.seedPoints(each).map((point, number) => [point, number])) : new Map();
      const ofSeed = (seed) => each.seeds ? each.seeds.values[each.seeds.names.indexOf(seed)] : undefined;
      along[0].forEach((_, point) => rows.push([
        name, labels[each.group], ...along.map((places) => places[point]), ...bands.map((values) => values && values[point]),
        ...seeds.map((seed) => ofSeed(seed)?.[drawn.get(point)]),
      ]));
    }
    return rows.map((row) => row.map(csvCell).join(",") + "\n").join("");
  }

  download() {
    const address = "data:text/csv;charset=utf-8," + encodeURIComponent(this.csv());
    const name = (this.chart.name + " " + this.data.where).replace(/[^A-Za-z0-9_.=]+/g, "-") + ".csv";
    make("a", { href: address, download: name }).click();
  }
}

const CSV_PLACES = { episodes: "episode", steps: "environment_steps", time: "seconds" };

// Names in third-party runs must not become formulas in a spreadsheet.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t]/.test(value) ? "'" + value : value;
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}
