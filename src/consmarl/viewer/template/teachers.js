// Every teammate of a student in an exchange: what it would say, whether it says it, and how much that weighs.
const MOST_SILENT = 6; // rows for silent teammates; more would hide the others
const NO_WEIGHT = "In brackets: does not count. The student already finds that best action at least as likely, or that worst " +
  "one at least as unlikely, or such knowledge has no weight in this episode (the indicator of Eq. 9, and Eq. 8).";

const EXPERTS = "Experts (E) stand beside the team: they hold no seat and only answer. They count as having seen this as often " +
  "as the student.";

class Teachers {
  constructor(run) {
    Object.assign(this, { run, isUnfolded: false, isCons: run.sharing === "cons" });
  }

  draw(episode, request) {
    const student = episode.at("requests/student", request), answering = episode.teachersOf(request);
    const everybody = [...Array(episode.numTeachers).keys()];
    const silent = everybody.filter((agent) => agent !== student && !answering.includes(agent));
    const lines = silent.map((teacher) => this.line(episode, request, teacher));
    const body = make("tbody", {}, ...answering.map((teacher) => this.line(episode, request, teacher)));
    if (silent.length > MOST_SILENT) body.append(this.fold(episode, request, silent, lines));
    body.append(...lines);
    const table = scrolling(make("table", { class: "teachers" }, this.head(), body));
    const notes = [this.run.remembered];
    if (episode.numTeachers > episode.numAgents) notes.push(EXPERTS);
    if (body.querySelector("[data-counts='0']")) notes.push(NO_WEIGHT);
    return [table, ...notes.map((words) => make("p", { class: "note" }, words))];
  }

  head() {
    const { run } = this, who = run.num_experts ? "Teacher" : "Teammate", words = [who, "Replies", "Max Q", "Best"], contents = { "Max Q": [term("max_value", run)] };
    if (!run.consult) { // consulting agents do not count visits
      words.splice(2, 0, "Seen this");
      contents["Seen this"] = ["Seen this ", term("visits", run)];
    }
    if (this.isCons) {
      words.push("Worst", "Γ", "Λ", "Weight of best", "of worst");
      Object.assign(contents, { "Γ": [term("confidence", run)], "Λ": [term("prestige", run)],
        "Weight of best": ["Weight ", term("share", run), " of best"] });
    }
    return heads(words, (head) => ![who, "Replies", "Best", "Worst"].includes(head), contents);
  }

  // One line in place of many silent teammates, with their reasons, and a button that shows them.
  fold(episode, request, silent, lines) {
    const reasons = new Map();
    for (const teacher of silent) {
      const words = this.reason(episode.at("teachers/reply", request, teacher));
      reasons.set(words, (reasons.get(words) ?? 0) + 1);
    }
    const button = make("button", { type: "button", class: "link", "data-focus": "silent" });
    const show = () => {
      button.textContent = this.isUnfolded ? "Hide them" : "Show them";
      button.setAttribute("aria-expanded", this.isUnfolded);
      for (const line of lines) line.hidden = !this.isUnfolded;
    };
    button.addEventListener("click", () => { this.isUnfolded = !this.isUnfolded; show(); });
    show();
    const words = [...reasons].map(([reason, count]) => `${reason} (${count})`).join(", ");
    const cell = make("td", { class: "folded", colspan: this.isCons ? 10 : this.run.consult ? 4 : 5 }, `${silent.length} are silent: ${words}. `, button);
    return make("tr", {}, cell);
  }

  line(episode, request, teacher) {
    const at = (field) => episode.at(`teachers/${field}`, request, teacher), reply = at("reply");
    const number = (field, decimals) => figure("td", field, at(field), decimals, { class: "n" });
    const told = (kind) => make("td", { class: "told", "data-action": at(`${kind}_action`) }, this.run.actions[at(`${kind}_action`)], " ",
      figure("small", `${kind}_probability`, at(`${kind}_probability`), 2));
    const words = make("td", { "data-field": "reply", "data-value": reply }, this.replyWords(reply, at("num_visits")));
    const visits = this.run.consult ? [] : [number("num_visits", 0)];
    const line = row(this.who(teacher), words, ...visits, number("max_value", 2), told("best"));
    if (this.isCons) line.append(told("worst"), number("confidence", 3), number("prestige", 2),
      this.weight(episode, request, teacher, "best_share", "raises"), this.weight(episode, request, teacher, "worst_share", "lowers"));
    line.dataset.teacher = teacher;
    if (reply !== REPLIES.ANSWERED) line.className = "is-silent";
    return line;
  }

  who(teacher) {
    return isExpert(teacher) ? make("td", { class: "who" }, agentChip(teacher), ` ${teacherName(teacher)}`) : agentChip(teacher);
  }

  // A teacher's weight; in brackets if the indicator of Eq. 9 or the schedule makes it count for nothing.
  weight(episode, request, teacher, field, counts) {
    if (episode.at("teachers/reply", request, teacher) !== REPLIES.ANSWERED) return make("td", { class: "n" }, "–");
    const isCounted = episode.at(`absorbed/${counts}`, request, teacher) === 1;
    const share = episode.at(`absorbed/${field}`, request, teacher);
    const cell = figure("td", field, share, 2, { class: "n", "data-counts": Number(isCounted) });
    if (!isCounted) { cell.textContent = `(${cell.textContent})`; cell.title += ", which does not count here"; }
    return cell;
  }

  replyWords(reply, numVisits) {
    if (reply === REPLIES.ANSWERED) return "answers";
    const isNew = [REPLIES.KNOWS_LESS, REPLIES.NOT_MORE_FAMILIAR].includes(reply) && numVisits === 0;
    return `silent: ${this.reason(reply)}${isNew ? ", never saw it" : ""}`;
  }

  reason(reply) {
    return {
      [REPLIES.NO_BUDGET]: "no budget", [REPLIES.NEVER_SEEN]: "never saw it", [REPLIES.KNOWS_LESS]: "knows less",
      [REPLIES.UNIMPORTANT]: "not important enough", [REPLIES.NOT_MORE_FAMILIAR]: "has not seen it more often",
      [REPLIES.NOT_MORE_HOPEFUL]: this.run.hope_margin ? `does not expect ${this.run.hope_margin} more` : "does not expect more",
    }[reply];
  }
}
