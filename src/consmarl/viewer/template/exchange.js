// What happened between a student and its teammates in a step: in a sentence, then in numbers.
const TITLES = {
  "Seen this": "n, how often the teammate has met the student's observation", "Max Q": "the most it expects of it",
  "Γ": "confidence, Eq. 4", "Λ": "prestige, Eq. 7",
  "Weight of best": "Eq. 10, among those who name the same action", "of worst": "Eq. 10",
};

class Exchange {
  constructor(run, who, tells, body) {
    Object.assign(this, { run, who, tells, body });
  }

  draw(episode, step, agent) {
    this.who.replaceChildren("Agent ", agentChip(agent), step < episode.numSteps ? ` in step ${step}` : " at the end");
    if (step >= episode.numSteps) {
      this.tells.textContent = `The episode is over. Agent ${agent} earned ${signed(episode.returns[step][agent])}, ` +
        `the team ${signed(episode.teamReturn(step))}.`;
      this.body.replaceChildren();
      return;
    }
    const request = episode.requestOf(step, agent);
    this.tells.replaceChildren(...this.sentences(episode, step, agent, request).map((words) => make("span", {}, words + " ")));
    const isAlone = request === undefined;
    this.body.replaceChildren(...(isAlone ? this.alone(episode, step, agent) : this.parts(episode, step, agent, request)));
  }

  name(action) { return this.run.actions[action]; }

  sentences(episode, step, agent, request) {
    const did = this.name(episode.at("steps/action", step, agent)), own = this.name(episode.at("steps/own_action", step, agent));
    const told = [];
    if (request === undefined) {
      if (episode.isSharing) told.push(this.whyNot(episode, step, agent));
      const isExploring = episode.at("steps/is_exploring", step, agent) === 1;
      const how = isExploring ? "It explores" : this.run.has_values ? "It does what looks best to it" : "It acts by its policy";
      told.push(`${how}: ${did}.`);
    } else {
      const numAnswers = episode.teachersOf(request).length, numOthers = this.run.num_agents - 1;
      told.push(`It asks: it has seen this ${this.times(episode.at("steps/num_visits", step, agent))}, so it asked with ` +
        `probability ${shown(episode.at("steps/ask_probability", step, agent))}.`);
      const verb = numAnswers === 1 ? "answers" : "answer";
      told.push(numAnswers === 0 ? "Nobody answers." : `${numAnswers} of ${counted(numOthers, "teammate")} ${verb}.`);
      if (episode.isAdvised(request)) {
        told.push(this.howDrawn(episode, request, did));
        told.push(did === own ? `By itself it would have done the same.` : `By itself it would have chosen ${own}.`);
      } else {
        if (numAnswers) told.push("That changes nothing it thinks.");
        told.push(`It does what it would have done: ${did}.`);
      }
    }
    return [...told, this.ledTo(episode, step, agent)];
  }

  times(count) { return count === 1 ? "for the first time" : `${whole(count)} times`; }

  whyNot(episode, step, agent) {
    if (episode.about.kind === "silent") return "Nobody asks here.";
    if (episode.about.kind === "training" && episode.about.number <= this.run.start_episode) return "Sharing has not begun yet.";
    const left = episode.at("steps/requests_left", step, agent);
    if (left === 0) return "It has no requests left.";
    return `It does not ask: it has seen this ${this.times(episode.at("steps/num_visits", step, agent))} ` +
      `(probability of asking ${shown(episode.at("steps/ask_probability", step, agent))}${this.gate(episode, step, agent)}).`;
  }

  gate(episode, step, agent) {
    const gate = Object.fromEntries(this.run.settings)["who may ask"];
    return gate !== "always" && !episode.at("steps/is_exploring", step, agent) ? ", had it explored" : "";
  }

  howDrawn(episode, request, did) {
    if (this.run.sharing !== "cons") return `It follows the majority: ${did}.`;
    const sureness = shown(episode.at("requests/confidence_after", request));
    if (episode.at("requests/is_best", request)) return `It takes what is best now, as it does with probability ${sureness}: ${did}.`;
    const excluded = [...episode.row("absorbed/is_excluded", request).keys()].filter(
      (action) => episode.at("absorbed/is_excluded", request, action));
    if (!excluded.length) return `It draws from all actions: ${did}.`;
    return `It leaves out ${listed(excluded.map((action) => this.name(action)))} and draws from the rest: ${did}.`;
  }

  ledTo(episode, step, agent) {
    const reward = episode.at("steps/rewards", step, agent);
    const rest = episode.returns[episode.numSteps][agent] - episode.returns[step + 1][agent];
    return `Reward ${signed(reward)}; ${signed(rest)} more until the end.`;
  }

  alone(episode, step, agent) {
    if (!episode.isSharing) return [];
    return [make("dl", { class: "facts-of" },
      fact("Probability of asking", "ask_probability", episode.at("steps/ask_probability", step, agent), 3),
      fact("Has seen this", "num_visits", episode.at("steps/num_visits", step, agent), 0),
      fact("Requests left", "requests_left", episode.at("steps/requests_left", step, agent), 0))];
  }

  parts(episode, step, agent, request) {
    const choices = this.choices(episode, step, agent, request), facts = this.facts(episode, step, agent, request);
    return [choices, facts, scrolling(this.teachers(episode, request))];
  }

  // Its probabilities before and after, action by action, and who spoke for and against.
  choices(episode, step, agent, request) {
    const isUsed = episode.isAdvised(request), kind = this.run.sharing === "cons" ? "after the answers" : "by votes";
    const key = make("p", { class: "key" }, make("span", { class: "swatch before" }), " before",
      make("span", { class: "swatch after" }), ` ${kind}${isUsed ? "" : ", which it does not use"}`);
    const most = Math.max(...episode.row("requests/policy_before", request), ...episode.row("requests/policy_after", request));
    const scale = Math.ceil(most * 4) / 4; // in quarters, so that bars can be compared between steps
    const actions = [...Array(episode.numActions).keys()];
    return make("div", { class: `choices${isUsed ? "" : " is-unused"}`, role: "list" }, key,
      ...actions.map((action) => this.choice(episode, step, agent, request, action, scale)));
  }

  choice(episode, step, agent, request, action, scale) {
    const number = (field) => episode.at(`requests/${field}`, request, action);
    const before = number("policy_before"), after = number("policy_after"), modified = number("modified");
    const isCons = this.run.sharing === "cons", isOut = episode.at("absorbed/is_excluded", request, action) === 1;
    const change = make("small", { class: "n" }, isCons ? signed(after - before, 3) : counted(modified, "vote"));
    return make("div", {
      class: `choice${isOut ? " is-out" : ""}`, role: "listitem", "data-action": action, "data-modified": String(modified),
      title: isCons ? `p̃ = ${modified}` : counted(modified, "vote"),
    },
    make("div", { class: "choice-head" }, make("b", {}, this.name(action)), this.marks(episode, step, agent, request, action, isOut)),
    make("div", { class: "bar-line" }, bar(before / scale, "before"), figure("span", "policy_before", before, 3, { class: "n" })),
    make("div", { class: "bar-line" }, bar(after / scale, "after"), figure("span", "policy_after", after, 3, { class: "n" }), change));
  }

  // Whether the student does it, would have done it or leaves it out, and whose best and worst it is.
  marks(episode, step, agent, request, action, isOut) {
    const own = episode.at("steps/own_action", step, agent), did = episode.at("steps/action", step, agent);
    const naming = (field) => episode.teachersOf(request).filter(
      (teacher) => episode.at(`teachers/${field}`, request, teacher) === action);
    const best = naming("best_action"), worst = this.run.sharing === "cons" ? naming("worst_action") : [];
    const marks = make("span", { class: "marks-of" });
    if (action === did) marks.append(make("b", { class: "tag did" }, "does"));
    if (action === own && own !== did) marks.append(make("b", { class: "tag own" }, "would have"));
    if (isOut) marks.append(make("b", { class: "tag out" }, "left out"));
    if (best.length) marks.append(make("span", { class: "word" }, "best to ", agentChips(best)));
    if (worst.length) marks.append(make("span", { class: "word" }, "worst to ", agentChips(worst)));
    return marks;
  }

  teachers(episode, request) {
    const isCons = this.run.sharing === "cons", student = episode.at("requests/student", request);
    const words = ["Teammate", "Replies", "Seen this", "Max Q", "Best"];
    if (isCons) words.push("Worst", "Γ", "Λ", "Weight of best", "of worst");
    const isNumber = (head) => !["Teammate", "Replies", "Best", "Worst"].includes(head);
    const answering = episode.teachersOf(request), everybody = [...Array(episode.numAgents).keys()];
    const silent = everybody.filter((agent) => agent !== student && !answering.includes(agent));
    const lines = [...answering, ...silent].map((teacher) => this.teacher(episode, request, teacher, isCons));
    return make("table", { class: "teachers" }, heads(words, isNumber, TITLES), make("tbody", {}, ...lines));
  }

  teacher(episode, request, teacher, isCons) {
    const at = (field) => episode.at(`teachers/${field}`, request, teacher), reply = at("reply");
    const number = (field, decimals) => figure("td", field, at(field), decimals, { class: "n" });
    const told = (kind) => make("td", { class: "told", "data-action": at(`${kind}_action`) }, this.name(at(`${kind}_action`)), " ",
      figure("small", `${kind}_probability`, at(`${kind}_probability`), 2));
    const words = make("td", { "data-field": "reply", "data-value": reply }, this.replyWords(reply, at("num_visits")));
    const line = row(agentChip(teacher), words, number("num_visits", 0), number("max_value", 2), told("best"));
    if (isCons) line.append(told("worst"), number("confidence", 3), number("prestige", 2),
      this.weight(episode, request, teacher, "best_share", "raises"), this.weight(episode, request, teacher, "worst_share", "lowers"));
    line.dataset.teacher = teacher;
    if (reply !== REPLIES.ANSWERED) line.className = "is-silent";
    return line;
  }

  // The share of a teacher's word; in brackets where the indicator of Eq. 9 or the schedule lets it count for nothing.
  weight(episode, request, teacher, field, counts) {
    if (episode.at("teachers/reply", request, teacher) !== REPLIES.ANSWERED) return make("td", { class: "n" }, "–");
    const isCounted = episode.at(`absorbed/${counts}`, request, teacher) === 1;
    const share = episode.at(`absorbed/${field}`, request, teacher);
    const cell = figure("td", field, share, 2, { class: "n", "data-counts": Number(isCounted) });
    if (!isCounted) { cell.textContent = `(${cell.textContent})`; cell.title += ", which does not count here"; }
    return cell;
  }

  replyWords(reply, numVisits) {
    return {
      [REPLIES.ANSWERED]: "answers",
      [REPLIES.NO_BUDGET]: "silent: no budget",
      [REPLIES.NEVER_SEEN]: "silent: never saw it",
      [REPLIES.KNOWS_LESS]: numVisits > 0 ? "silent: knows less" : "silent: knows less, never saw it",
      [REPLIES.UNIMPORTANT]: "silent: not important enough",
    }[reply];
  }

  facts(episode, step, agent, request) {
    const ofStep = (field) => episode.at(`steps/${field}`, step, agent);
    const ofRequest = (field) => episode.at(`requests/${field}`, request);
    const list = make("dl", { class: "facts-of" },
      fact("Probability of asking", "ask_probability", ofStep("ask_probability"), 3),
      fact("Has seen this", "num_visits", ofStep("num_visits"), 0));
    if (this.run.sharing === "cons") list.append(
      fact("Weight of negative knowledge, w_n", "negative_weight", ofRequest("negative_weight"), 3),
      fact("Confidence after, Γ̃", "confidence_after", ofRequest("confidence_after"), 3),
      fact("Actions left out", "num_excluded", ofRequest("num_excluded"), 0));
    list.append(fact("Requests left", "requests_left", ofStep("requests_left"), 0), fact("Reward", "rewards", ofStep("rewards"), 2));
    return list;
  }
}
