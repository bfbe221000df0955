// Sharing over the run and over the episodes shown here, and who taught whom.
const HOW_COUNTED = "Knowledge counts if it moves a probability. Positive knowledge changed a choice if the student did a " +
  "teacher's best action instead of its own; negative knowledge, if a teacher's worst action was the student's own and it did " +
  "another. Actions are drawn at random, so part of both is chance. Agreement: the share of answers whose best action is what the " +
  "student would have done by itself.";

const HOW_CONSULTED = "An answer changed a choice if the student did the teammate's best action instead of its own. " +
  "Agreement: the share of answers whose best action is what the student would have done by itself.";

class OverTime {
  constructor(run, body, chooseEpisode) {
    Object.assign(this, { run, body, chooseEpisode, scope: "all", charts: [] });
    this.isSharing = run.sharing !== "none" && !run.is_silent;
    if (run.series.episode.length && this.isSharing) this.makeCharts();
    this.table = make("table", { class: "episodes" });
    this.matrix = make("div", { class: "matrix" });
    const charts = make("div", { class: "charts" }, ...this.charts.map((chart) => chart.element));
    charts.hidden = !this.charts.length;
    const episodes = make("section", { class: "card" }, make("h3", {}, "The episodes shown here"), scrolling(this.table, "tall"),
      ...(this.isSharing ? [make("p", { class: "note" }, run.consult ? HOW_CONSULTED : HOW_COUNTED)] : []));
    body.append(...(data.pairs ? [episodes, charts] : [charts, episodes])); // pairs are compared side by side
    if (this.isSharing) body.append(this.matrixCard());
  }

  makeCharts() {
    const { run } = this, chart = (...what) => this.charts.push(new LineChart(run, ...what, this.chooseEpisode));
    chart("Requests and answers per episode", [["requests", "requests"], ["answers", "answers"]], 0);
    chart("Requests left, mean over agents", [["requests_left", "requests left"]], run.budgets.requests);
    if (run.has_answer_budget)
      chart("Answers left, mean over agents", [["answers_left", "answers left"]], run.budgets.answers);
  }

  draw(episode) {
    this.shownKey = episode.about.key;
    this.drawTable();
    for (const chart of this.charts) chart.mark(this.shownKey);
    if (this.isSharing) this.drawMatrix();
  }

  drawTable() {
    const { isSharing } = this, isCons = this.run.sharing === "cons";
    const words = ["Episode", "Return"];
    if (data.pairs) words.push(data.runs[0].consult ? "Consulting − alone" : "With − without");
    if (isSharing) words.push("Requests", "Answers", "Followed", "Changed choices");
    if (isSharing) words.push(...(isCons ? ["Positive changes", "Negative changes"] : ["Advice changes"]));
    if (isSharing) words.push("Agreement", ...(this.run.consult ? [] : ["Requests left"]));
    const lines = this.run.episodes.map((about, place) => this.line(about, place, isSharing, isCons, words.length));
    this.table.replaceChildren(heads(words, (head) => head !== "Episode"), make("tbody", {}, ...lines));
  }

  line(about, place, isSharing, isCons, numColumns) {
    const { summary } = about, focus = `episode-${about.key}`;
    const name = make("button", { type: "button", class: "link", "data-focus": focus }, about.name);
    name.addEventListener("click", () => this.chooseEpisode(about.key));
    const line = row(rowHead(name, make("small", {}, about.note)), this.amount("return", summary.return, shown(settled(summary.return), 2)));
    if (data.pairs) line.append(this.amount("difference", data.pairs.differences[place], signed(data.pairs.differences[place])));
    if (isSharing && summary.is_sharing) line.append(...this.totals(summary, isCons));
    if (isSharing && !summary.is_sharing)
      line.append(make("td", { class: "quiet-cell", colspan: numColumns - 2 }, "without sharing"));
    if (about.key === this.shownKey) line.setAttribute("aria-current", "true");
    line.dataset.key = about.key;
    return line;
  }

  amount(field, value, text) {
    return make("td", { class: "n", "data-field": field, "data-value": String(value), title: String(value) }, text);
  }

  totals(summary, isCons) {
    const count = (field) => figure("td", field, summary[field], 0, { class: "n" });
    const share = (field, part, all) => {
      const words = `${whole(part)} of ${whole(all)}`, percent = all ? `${Math.round(100 * part / all)} %` : "–";
      return make("td", { class: "n", "data-field": field, "data-value": `${part}/${all}` }, percent, make("small", {}, words));
    };
    const left = summary.requests_left.reduce((sum, each) => sum + each, 0);
    return [count("requests"), count("answers"), count("advised"), count("changed"),
      share("positive", summary.positive_changed, summary.positive),
      ...(isCons ? [share("negative", summary.negative_changed, summary.negative)] : []),
      share("agreement", summary.agreeing, summary.answers),
      ...(this.run.consult ? [] : [figure("td", "left", left, 0, { class: "n" })])];
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
    const head = make("div", { class: "chart-head" }, make("h3", {}, "Who teaches whom"), tabs);
    return make("section", { class: "card" }, head, scrolling(this.matrix),
      make("p", { class: "note" }, "Answers given, by teacher (rows) and student (columns)."));
  }

  drawMatrix() {
    const { num_agents: numAgents, num_experts: numExperts } = this.run, students = [...Array(numAgents).keys()];
    const sums = Array.from({ length: numAgents + numExperts }, () => new Array(numAgents).fill(0));
    for (const about of this.run.episodes) {
      if (!about.summary.is_sharing || (this.scope === "this" && about.key !== this.shownKey)) continue;
      about.summary.taught.forEach((line, teacher) => line.forEach((count, student) => { sums[teacher][student] += count; }));
    }
    const most = Math.max(1, ...sums.flat()), total = (numbers) => numbers.reduce((sum, each) => sum + each, 0);
    const lines = sums.map((line, teacher) => row(rowHead(agentChip(teacher)),
      ...line.map((count, student) => this.cell(teacher, student, count, count / most)),
      make("td", { class: "sum" }, whole(total(line)))));
    const got = students.map((student) => make("td", { class: "sum" }, whole(total(sums.map((line) => line[student])))));
    const head = make("tr", {}, ...["", ...students.map(agentChip), "gave"].map((each) => make("th", {}, each)));
    this.matrix.replaceChildren(make("table", { class: "taught" }, make("thead", {}, head),
      make("tbody", {}, ...lines, row(make("th", { scope: "row", class: "sum" }, "got"), ...got, ""))));
  }

  cell(teacher, student, count, share) {
    const title = `${teacherName(teacher)} gave agent ${student} ${counted(count, "answer")}`;
    const cell = figure("td", "taught", count, 0, { "data-teacher": teacher, "data-student": student, title });
    if (teacher === student) { cell.textContent = ""; cell.className = "self"; }
    cell.style.setProperty("--share", share);
    if (share > 0.55) cell.classList.add("is-dark");
    return cell;
  }
}
