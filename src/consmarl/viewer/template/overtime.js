// How sharing went over the run and over the episodes shown here, and who taught whom.
const CHART = { width: 330, height: 150, left: 44, right: 12, top: 10, bottom: 24 };

class OverTime {
  constructor(run, body, chooseEpisode) {
    Object.assign(this, { run, body, chooseEpisode, scope: "all" });
    if (run.series.episode.length) {
      this.charts = [
        this.chart("Requests and answers an episode", [["requests", "requests"], ["answers", "answers"]]),
        this.chart("Requests left, mean of the agents", [["requests_left", "requests left"]], run.budgets?.requests),
      ];
      if (run.has_answer_budget) this.charts.push(this.chart("Answers left, mean of the agents", [["answers_left", "answers left"]], run.budgets?.answers));
    } else this.charts = [];
    const charts = make("div", { class: "charts" }, ...this.charts.map((chart) => chart.element));
    this.table = make("table", { class: "episodes" });
    this.matrix = make("div", { class: "matrix" });
    const episodes = make("section", { class: "card" }, make("h3", {}, "The episodes shown here"), make("div", { class: "scroll" }, this.table),
      make("p", { class: "note" }, "Knowledge counts where it moves a probability. Positive knowledge changed a choice if the student did a teacher's " +
        "best action instead of its own; negative knowledge, if a teacher's worst action was the student's own and it did another. " +
        "Actions are drawn, so a part of both is chance. " +
        "Agreement: the share of answers whose best action is what the student would have done by itself."));
    body.append(...(this.charts.length ? [charts] : []), episodes);
    if (run.sharing !== "none") body.append(this.matrixCard());
  }

  draw(episode) {
    this.shownKey = episode.about.key;
    this.drawTable();
    for (const chart of this.charts) chart.mark(this.shownKey);
    if (this.run.sharing !== "none") this.drawMatrix();
  }

  drawTable() {
    const isSharing = this.run.sharing !== "none", isCons = this.run.sharing === "cons";
    const heads = ["Episode", "Return", ...(isSharing ? ["Requests", "Answers", "Followed", "Changed choices",
      ...(isCons ? ["Positive that changed", "Negative that changed"] : ["Advice that changed"]), "Agreement", "Requests left"] : [])];
    const body = make("tbody", {});
    for (const about of this.run.episodes) {
      const { summary } = about, name = make("button", { type: "button", class: "link" }, about.name);
      name.addEventListener("click", () => this.chooseEpisode(about.key));
      const first = make("th", { scope: "row" }, name, make("small", {}, about.note));
      const line = row("td", first, figure("td", "return", summary.return, 2, { class: "n" }));
      if (isSharing && summary.is_sharing) line.append(...this.totals(summary, isCons));
      if (isSharing && !summary.is_sharing) line.append(make("td", { class: "quiet-cell", colspan: heads.length - 2 }, "without sharing"));
      if (about.key === this.shownKey) line.setAttribute("aria-current", "true");
      line.dataset.key = about.key;
      body.append(line);
    }
    this.table.replaceChildren(make("thead", {}, row("th", ...heads.map((head, place) => make("th", { scope: "col", class: place ? "n" : "" }, head)))), body);
  }

  totals(summary, isCons) {
    const count = (field) => figure("td", field, summary[field], 0, { class: "n" });
    const share = (field, part, whole) => {
      const text = whole ? `${Math.round(100 * part / whole)} %` : "–";
      return make("td", { class: "n", "data-field": field, "data-value": `${part}/${whole}`, title: `${part} of ${whole}` }, text, make("small", {}, `${part} of ${whole}`));
    };
    const left = summary.requests_left.reduce((sum, each) => sum + each, 0);
    return [count("requests"), count("answers"), count("advised"), count("changed"),
      share("positive", summary.positive_changed, summary.positive),
      ...(isCons ? [share("negative", summary.negative_changed, summary.negative)] : []),
      share("agreement", summary.agreeing, summary.answers), figure("td", "left", left, 0, { class: "n" })];
  }

  matrixCard() {
    const tabs = make("div", { class: "tabs", role: "group", "aria-label": "Which episodes" });
    for (const [scope, words] of [["all", "All shown"], ["this", "This episode"]]) {
      const button = make("button", { type: "button", "aria-pressed": scope === this.scope, "data-scope": scope }, words);
      button.addEventListener("click", () => {
        this.scope = scope;
        for (const each of tabs.children) each.setAttribute("aria-pressed", each === button);
        this.drawMatrix();
      });
      tabs.append(button);
    }
    return make("section", { class: "card" }, make("div", { class: "chart-head" }, make("h3", {}, "Who teaches whom"), tabs), make("div", { class: "scroll" }, this.matrix),
      make("p", { class: "note" }, "Answers given, by teacher (rows) and student (columns)."));
  }

  drawMatrix() {
    const sums = Array.from({ length: this.run.num_agents }, () => new Array(this.run.num_agents).fill(0));
    for (const about of this.run.episodes) {
      if (!about.summary.is_sharing || (this.scope === "this" && about.key !== this.shownKey)) continue;
      about.summary.taught.forEach((line, teacher) => line.forEach((count, student) => { sums[teacher][student] += count; }));
    }
    const most = Math.max(1, ...sums.flat());
    const table = make("table", { class: "taught" });
    table.append(make("thead", {}, row("th", "", ...sums.map((_, student) => agentChip(student)), "gave")));
    const body = make("tbody", {});
    sums.forEach((line, teacher) => {
      const cells = line.map((count, student) => {
        const cell = figure("td", "taught", count, 0, { "data-teacher": teacher, "data-student": student, title: `agent ${teacher} gave agent ${student} ${counted(count, "answer")}` });
        if (teacher === student) { cell.textContent = ""; cell.className = "self"; }
        cell.style.setProperty("--share", count / most);
        if (count / most > 0.55) cell.classList.add("is-dark");
        return cell;
      });
      body.append(row("td", make("th", { scope: "row" }, agentChip(teacher)), ...cells, make("td", { class: "sum" }, line.reduce((sum, each) => sum + each, 0).toLocaleString("en-US"))));
    });
    const got = sums.map((_, student) => sums.reduce((sum, line) => sum + line[student], 0));
    body.append(row("td", make("th", { scope: "row", class: "sum" }, "got"), ...got.map((sum) => make("td", { class: "sum" }, sum.toLocaleString("en-US"))), ""));
    table.append(body);
    this.matrix.replaceChildren(table);
  }

  chart(title, lines, ceiling) {
    return new LineChart(this.run, title, lines, ceiling, this.chooseEpisode);
  }
}

// Lines over the episodes of the whole run, with the episodes shown here as marks to choose them by.
class LineChart {
  constructor(run, title, lines, ceiling, chooseEpisode) {
    Object.assign(this, { run, lines, chooseEpisode });
    this.episodes = run.series.episode;
    this.most = Math.max(...lines.flatMap(([name]) => run.series[name]), ceiling ?? 0) || 1;
    this.last = this.episodes.at(-1);
    this.readout = make("p", { class: "readout" });
    this.drawing = make("svg", { viewBox: `0 0 ${CHART.width} ${CHART.height}`, class: "small-chart", role: "img", "aria-label": title });
    this.drawing.append(...this.axes(), ...lines.map(([name], place) => this.line(name, place)), this.marks = make("g", { class: "episode-marks" }),
      this.cursor = make("path", { class: "cursor" }));
    const legend = make("p", { class: "key" });
    if (lines.length > 1) lines.forEach(([, words], place) => legend.append(make("span", { class: `line-key k${place}` }), ` ${words} `));
    this.element = make("figure", { class: "card" }, make("h3", {}, title), legend, this.drawing, this.readout);
    this.drawing.addEventListener("pointermove", (event) => this.point(event));
    this.drawing.addEventListener("pointerleave", () => { this.readout.textContent = ""; this.cursor.setAttribute("d", ""); });
  }

  x(episode) { return CHART.left + episode / this.last * (CHART.width - CHART.left - CHART.right); }
  y(value) { return CHART.height - CHART.bottom - value / this.most * (CHART.height - CHART.top - CHART.bottom); }

  axes() {
    const parts = [], floor = CHART.height - CHART.bottom;
    for (const share of [0, 0.5, 1]) {
      const value = this.most * share, y = this.y(value);
      parts.push(make("line", { class: share ? "rule" : "rule floor", x1: CHART.left, x2: CHART.width - CHART.right, y1: y, y2: y }),
        make("text", { x: CHART.left - 6, y: y + 4, "text-anchor": "end" }, this.label(value)));
    }
    for (const share of [0, 0.5, 1])
      parts.push(make("text", { x: this.x(this.last * share), y: floor + 18, "text-anchor": share === 1 ? "end" : share ? "middle" : "start" }, Math.round(this.last * share).toLocaleString("en-US")));
    if (this.run.start_episode > 0 && this.run.start_episode < this.last) {
      const at = this.x(this.run.start_episode);
      parts.push(make("line", { class: "begin", x1: at, x2: at, y1: CHART.top, y2: floor }), make("text", { x: at + 4, y: CHART.top + 10 }, "sharing begins"));
    }
    return parts;
  }

  label(value) {
    return value >= 10000 ? `${Math.round(value / 1000)}k` : value >= 10 || value === 0 ? Math.round(value).toLocaleString("en-US") : value.toFixed(1);
  }

  line(name, place) {
    const points = this.run.series[name].map((value, at) => `${this.x(this.episodes[at]).toFixed(1)} ${this.y(value).toFixed(1)}`);
    return make("path", { class: `series k${place}`, d: `M${points.join("L")}` });
  }

  mark(shownKey) {
    const floor = CHART.height - CHART.bottom;
    this.marks.replaceChildren(...this.run.episodes.filter((about) => about.kind === "training" && about.number <= this.last).map((about) => {
      const mark = make("path", { d: "M0 0L-5 8H5Z", transform: `translate(${this.x(about.number)} ${floor})`, class: about.key === shownKey ? "is-shown" : "" },
        make("title", {}, about.name));
      mark.addEventListener("click", () => this.chooseEpisode(about.key));
      return mark;
    }));
  }

  point(event) {
    const box = this.drawing.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width * CHART.width;
    const wanted = (across - CHART.left) / (CHART.width - CHART.left - CHART.right) * this.last;
    let at = 0;
    this.episodes.forEach((episode, place) => { if (Math.abs(episode - wanted) < Math.abs(this.episodes[at] - wanted)) at = place; });
    const x = this.x(this.episodes[at]);
    this.cursor.setAttribute("d", `M${x} ${CHART.top}V${CHART.height - CHART.bottom}`);
    this.readout.textContent = `to episode ${this.episodes[at].toLocaleString("en-US")}: ` +
      this.lines.map(([name, words]) => `${this.run.series[name][at].toLocaleString("en-US", { maximumFractionDigits: 2 })} ${words}`).join(", ");
  }
}
