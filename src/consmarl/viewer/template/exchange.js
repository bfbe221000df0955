// What happened between a student and its teammates in a step: in a sentence, then in numbers.
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
    this.body.replaceChildren(...(request === undefined ? this.alone(episode, step, agent) : this.parts(episode, step, agent, request)));
  }

  name(action) { return this.run.actions[action]; }

  sentences(episode, step, agent, request) {
    const did = this.name(episode.at("steps/action", step, agent)), own = this.name(episode.at("steps/own_action", step, agent));
    const told = [];
    if (request === undefined) {
      if (episode.isSharing) told.push(this.whyNot(episode, step, agent));
      told.push(episode.at("steps/is_exploring", step, agent) ? `It explores: ${did}.` : `It does what looks best to it: ${did}.`);
    } else {
      const numAnswers = episode.teachersOf(request).length;
      told.push(`It asks: it has seen this ${this.times(episode.at("steps/num_visits", step, agent))}, so it asked with ` +
        `probability ${shown(episode.at("steps/ask_probability", step, agent))}.`);
      told.push(numAnswers === 0 ? "Nobody answers." : `${numAnswers} of ${this.run.num_agents - 1} teammates ${numAnswers === 1 ? "answers" : "answer"}.`);
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

  times(count) { return count === 1 ? "for the first time" : `${count.toLocaleString("en-US")} times`; }

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
    if (episode.at("requests/is_best", request)) return `It is sure enough to take the best action: ${did}.`;
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
    const did = episode.at("steps/action", step, agent);
    const table = make("table", { class: "choices" });
    if (!episode.isSharing) return [];
    table.append(make("tbody", {},
      row("td", make("th", { scope: "row" }, "Probability of asking"), figure("td", "ask_probability", episode.at("steps/ask_probability", step, agent), 3, { class: "n" })),
      row("td", make("th", { scope: "row" }, "Seen this"), figure("td", "num_visits", episode.at("steps/num_visits", step, agent), 0, { class: "n" })),
      row("td", make("th", { scope: "row" }, "Does"), make("td", { class: "n" }, this.name(did)))));
    return [table];
  }

  parts(episode, step, agent, request) {
    const scroll = (table) => make("div", { class: "scroll" }, table);
    const facts = this.facts(episode, step, agent, request);
    return [this.choices(episode, step, agent, request), facts, scroll(this.teachers(episode, request))];
  }

  // Its probabilities before and after, action by action, and who spoke for and against.
  choices(episode, step, agent, request) {
    const isCons = this.run.sharing === "cons";
    const own = episode.at("steps/own_action", step, agent), did = episode.at("steps/action", step, agent);
    const isUsed = episode.isAdvised(request);
    const list = make("div", { class: `choices${isUsed ? "" : " is-unused"}`, role: "list" });
    list.append(make("p", { class: "key" }, make("span", { class: "swatch before" }), " before", make("span", { class: "swatch after" }),
      (isCons ? " after the answers" : " by votes") + (isUsed ? "" : ", which it does not use")));
    const most = Math.max(...episode.row("requests/policy_before", request), ...episode.row("requests/policy_after", request));
    const scale = Math.ceil(most * 4) / 4; // in quarters, so that bars can be compared between steps
    for (let action = 0; action < episode.numActions; action++) {
      const speaking = (field) => episode.teachersOf(request).filter((teacher) => episode.at(`teachers/${field}`, request, teacher) === action);
      const isOut = episode.at("absorbed/is_excluded", request, action) === 1;
      const marks = make("span", { class: "marks-of" });
      if (action === did) marks.append(make("b", { class: "tag did" }, "does"));
      if (action === own && own !== did) marks.append(make("b", { class: "tag own" }, "would have"));
      if (isOut) marks.append(make("b", { class: "tag out" }, "left out"));
      const best = speaking("best_action"), worst = isCons ? speaking("worst_action") : [];
      if (best.length) marks.append(make("span", { class: "word" }, "best to ", agentChips(best)));
      if (worst.length) marks.append(make("span", { class: "word" }, "worst to ", agentChips(worst)));
      const before = episode.at("requests/policy_before", request, action), after = episode.at("requests/policy_after", request, action);
      const modified = episode.at("requests/modified", request, action);
      const title = isCons ? `p̃ = ${modified}` : `${modified} votes`;
      list.append(make("div", { class: `choice${isOut ? " is-out" : ""}`, role: "listitem", "data-action": action, "data-modified": String(modified), title },
        make("div", { class: "choice-head" }, make("b", {}, this.name(action)), marks),
        make("div", { class: "bar-line" }, bar(before / scale, "before"), figure("span", "policy_before", before, 3, { class: "n" })),
        make("div", { class: "bar-line" }, bar(after / scale, "after"), figure("span", "policy_after", after, 3, { class: "n" }),
          make("small", { class: "n" }, isCons ? signed(after - before, 3) : counted(modified, "vote")))));
    }
    return list;
  }

  teachers(episode, request) {
    const isCons = this.run.sharing === "cons";
    const table = make("table", { class: "teachers" });
    const heads = isCons
      ? ["Teammate", "Replies", "Seen this", "Max Q", "Best", "Worst", "Γ", "Λ", "Weight of best", "of worst"]
      : ["Teammate", "Replies", "Seen this", "Max Q", "Best"];
    const right = ["Seen this", "Max Q", "Γ", "Λ", "Weight of best", "of worst"];
    const titles = { "Γ": "confidence, Eq. 4", "Λ": "prestige, Eq. 7", "Weight of best": "Eq. 10, among those who name the same action", "of worst": "Eq. 10" };
    table.append(make("thead", {}, row("th", ...heads.map((head) => make("th", { scope: "col", title: titles[head] ?? "", class: right.includes(head) ? "n" : "" }, head)))));
    const body = make("tbody", {});
    const student = episode.at("requests/student", request);
    const answering = episode.teachersOf(request), everybody = [...Array(episode.numAgents).keys()];
    const silent = everybody.filter((agent) => agent !== student && !answering.includes(agent));
    for (const teacher of [...answering, ...silent]) body.append(this.teacher(episode, request, teacher, isCons));
    table.append(body);
    return table;
  }

  teacher(episode, request, teacher, isCons) {
    const number = (field, decimals) => figure("td", field, episode.at(`teachers/${field}`, request, teacher), decimals, { class: "n" });
    const told = (action, probability) => {
      const cell = make("td", { class: "told" }, this.name(episode.at(`teachers/${action}`, request, teacher)), " ");
      cell.append(figure("small", probability, episode.at(`teachers/${probability}`, request, teacher), 2));
      cell.dataset.action = episode.at(`teachers/${action}`, request, teacher);
      return cell;
    };
    const reply = episode.at("teachers/reply", request, teacher);
    const cells = [agentChip(teacher), make("td", { "data-field": "reply", "data-value": reply }, this.replyWords(episode, request, teacher, reply)),
      number("num_visits", 0), number("max_value", 2), told("best_action", "best_probability")];
    if (isCons) {
      cells.push(told("worst_action", "worst_probability"), number("confidence", 3), number("prestige", 2));
      cells.push(this.weight(episode, request, teacher, "best_share", "raises"), this.weight(episode, request, teacher, "worst_share", "lowers"));
    }
    const line = row("td", ...cells);
    line.dataset.teacher = teacher;
    if (reply !== REPLIES.ANSWERED) line.className = "is-silent";
    return line;
  }

  // The share of a teacher's word; in brackets where the indicator of Eq. 9 or the schedule lets it count for nothing.
  weight(episode, request, teacher, field, counts) {
    if (episode.at("teachers/reply", request, teacher) !== REPLIES.ANSWERED) return make("td", { class: "n" }, "–");
    const share = episode.at(`absorbed/${field}`, request, teacher), isCounted = episode.at(`absorbed/${counts}`, request, teacher) === 1;
    const cell = figure("td", field, share, 2, { class: "n", "data-counts": Number(isCounted) });
    if (!isCounted) { cell.textContent = `(${cell.textContent})`; cell.title += ", which does not count here"; }
    return cell;
  }

  replyWords(episode, request, teacher, reply) {
    const hasSeen = episode.at("teachers/num_visits", request, teacher) > 0;
    return {
      [REPLIES.ANSWERED]: "answers",
      [REPLIES.NO_BUDGET]: "silent: no budget",
      [REPLIES.NEVER_SEEN]: "silent: never saw it",
      [REPLIES.KNOWS_LESS]: hasSeen ? "silent: knows less" : "silent: knows less, never saw it",
      [REPLIES.UNIMPORTANT]: "silent: not important enough",
    }[reply];
  }

  facts(episode, step, agent, request) {
    const list = make("dl", { class: "facts-of" });
    const fact = (words, field, value, decimals) => list.append(make("div", {}, make("dt", {}, words), figure("dd", field, value, decimals)));
    fact("Probability of asking", "ask_probability", episode.at("steps/ask_probability", step, agent), 3);
    fact("Has seen this", "num_visits", episode.at("steps/num_visits", step, agent), 0);
    if (this.run.sharing === "cons") {
      const negative = episode.at("requests/negative_weight", request);
      fact("Weight of negative knowledge, w_n", "negative_weight", negative, 3);
      fact("Confidence after, Γ̃", "confidence_after", episode.at("requests/confidence_after", request), 3);
      fact("Actions left out", "num_excluded", episode.at("requests/num_excluded", request), 0);
    }
    fact("Requests left", "requests_left", episode.at("steps/requests_left", step, agent), 0);
    fact("Reward", "rewards", episode.at("steps/rewards", step, agent), 2);
    return list;
  }
}
