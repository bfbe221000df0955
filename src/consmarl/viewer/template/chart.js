const CHART = { width: 330, height: 150, left: 44, right: 12, top: 10, bottom: 24 };

// Lines over the episodes of the whole run, with markers for selecting the episodes shown here.
class LineChart {
  constructor(run, title, lines, ceiling, chooseEpisode) {
    Object.assign(this, { run, lines, chooseEpisode });
    this.episodes = run.series.episode;
    this.most = Math.max(...lines.flatMap(([name]) => run.series[name]), ceiling) || 1;
    this.last = this.episodes.at(-1);
    this.readout = make("p", { class: "readout" });
    this.marks = make("g", { class: "episode-marks" });
    this.cursor = make("path", { class: "cursor" });
    const viewBox = `0 0 ${CHART.width} ${CHART.height}`;
    this.drawing = make("svg", { class: "small-chart", viewBox, role: "img", "aria-label": title }, ...this.axes(),
      ...lines.map(([name], place) => this.line(name, place)), this.marks, this.cursor);
    const legend = make("p", { class: "key" });
    lines.forEach(([, words], place) => {
      if (lines.length > 1) legend.append(make("span", { class: `line-key k${place}` }), ` ${words} `);
    });
    this.element = make("figure", { class: "card" }, make("h3", {}, title), legend, this.drawing, this.readout);
    this.drawing.addEventListener("pointermove", (event) => this.point(event));
    this.drawing.addEventListener("pointerleave", () => { this.readout.textContent = ""; this.cursor.setAttribute("d", ""); });
  }

  x(episode) { return CHART.left + episode / this.last * (CHART.width - CHART.left - CHART.right); }
  y(value) { return CHART.height - CHART.bottom - value / this.most * (CHART.height - CHART.top - CHART.bottom); }

  axes() {
    const parts = [], floor = CHART.height - CHART.bottom, anchors = { 0: "start", 0.5: "middle", 1: "end" };
    for (const share of [0, 0.5, 1]) {
      const value = this.most * share, y = this.y(value), episode = Math.round(this.last * share);
      parts.push(make("line", { class: share ? "rule" : "rule floor", x1: CHART.left, x2: CHART.width - CHART.right, y1: y, y2: y }),
        make("text", { x: CHART.left - 6, y: y + 4, "text-anchor": "end" }, this.label(value)),
        make("text", { x: this.x(episode), y: floor + 18, "text-anchor": anchors[share] }, whole(episode)));
    }
    const at = this.x(this.run.start_episode);
    if (this.run.start_episode > 0 && this.run.start_episode < this.last)
      parts.push(make("line", { class: "begin", x1: at, x2: at, y1: CHART.top, y2: floor }),
        make("text", { x: at + 4, y: CHART.top + 10 }, "sharing starts"));
    return parts;
  }

  label(value) {
    if (value >= 10000) return `${Math.round(value / 1000)}k`;
    return value >= 10 || value === 0 ? whole(Math.round(value)) : value.toFixed(1);
  }

  line(name, place) {
    const { x, y } = { x: (at) => this.x(this.episodes[at]).toFixed(1), y: (value) => this.y(value).toFixed(1) };
    const points = this.run.series[name].map((value, at) => `${x(at)} ${y(value)}`);
    return make("path", { class: `series k${place}`, d: `M${points.join("L")}` });
  }

  mark(shownKey) {
    const floor = CHART.height - CHART.bottom;
    const inReach = this.run.episodes.filter((about) => about.kind === "training" && about.number <= this.last);
    this.marks.replaceChildren(...inReach.map((about) => {
      const mark = make("path", {
        d: "M0 0L-5 8H5Z", transform: `translate(${this.x(about.number)} ${floor})`, class: about.key === shownKey ? "is-shown" : "",
      }, make("title", {}, about.name));
      mark.addEventListener("click", () => this.chooseEpisode(about.key));
      return mark;
    }));
  }

  point(event) {
    const box = this.drawing.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width * CHART.width;
    const wanted = (across - CHART.left) / (CHART.width - CHART.left - CHART.right) * this.last;
    const away = (place) => Math.abs(this.episodes[place] - wanted);
    const at = this.episodes.reduce((nearest, _, place) => (away(place) < away(nearest) ? place : nearest), 0);
    this.cursor.setAttribute("d", `M${this.x(this.episodes[at])} ${CHART.top}V${CHART.height - CHART.bottom}`);
    const told = this.lines.map(([name, words]) => `${whole(Math.round(this.run.series[name][at] * 100) / 100)} ${words}`);
    this.readout.textContent = `up to episode ${whole(this.episodes[at])}: ${told.join(", ")}`;
  }
}
