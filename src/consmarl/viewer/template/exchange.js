// What happened between a student and its teammates in a step: first in sentences, then in numbers.
class Exchange {
  constructor(run, who, tells, body) {
    Object.assign(this, { run, who, tells, body, isCons: run.sharing === "cons", teachers: new Teachers(run) });
  }

  draw(episode, step, agent) {
    this.who.replaceChildren("Agent ", agentChip(agent), step < episode.numSteps ? ` in step ${step}` : " at the end");
    if (step >= episode.numSteps) {
      this.tells.textContent = `The episode is over. Agent ${agent} earned ${earned(episode.returns[step][agent])}, ` +
        `the team ${earned(episode.teamReturn(step))}.`;
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
      const how = isExploring ? "It explores" : this.run.has_values ? "It takes its best action" : "It follows its policy";
      told.push(`${how}: ${did}.`);
    } else {
      const numAnswers = episode.teachersOf(request).length;
      told.push(this.run.consult ? "It asks all its teammates." : `It asks. ${this.familiar(episode, step, agent)}, ` +
        `so its probability of asking was ${shown(episode.at("steps/ask_probability", step, agent))}.`);
      told.push(numAnswers === 0 ? "Nobody answers." : this.whoAnswers(episode, request));
      if (episode.isAdvised(request)) {
        told.push(this.howDrawn(episode, request, did));
        told.push(did === own ? `By itself it would have done the same.` : `By itself it would have chosen ${own}.`);
      } else {
        if (numAnswers) told.push("Their answers do not change its policy.");
        told.push(`It does what it would have done anyway: ${did}.`);
      }
    }
    return [...told, this.ledTo(episode, step, agent)];
  }

  whoAnswers(episode, request) {
    const answering = episode.teachersOf(request), numExperts = episode.numTeachers - episode.numAgents;
    const fromExperts = answering.filter(isExpert).length, fromTeam = answering.length - fromExperts;
    const words = [`${fromTeam} of ${counted(episode.numAgents - 1, "teammate")}`];
    if (numExperts) words.push(`${fromExperts} of ${counted(numExperts, "expert")}`);
    return `${words.join(" and ")} ${answering.length === 1 && !numExperts ? "answers" : "answer"}.`;
  }

  familiar(episode, step, agent) {
    const count = episode.at("steps/num_visits", step, agent); // including this time
    return count <= 1 ? "It has never seen this before" : `It has seen this ${count === 2 ? "once" : `${whole(count - 1)} times`} before`;
  }

  whyNot(episode, step, agent) {
    if (episode.about.kind === "silent") return "Nobody asks here.";
    if (episode.about.kind === "training" && episode.about.number <= this.run.start_episode) return "Sharing has not started yet.";
    const left = episode.at("steps/requests_left", step, agent);
    if (left === 0) return "It has no requests left.";
    const chance = shown(episode.at("steps/ask_probability", step, agent));
    return `It does not ask. ${this.familiar(episode, step, agent)} (probability of asking ${chance}${this.gate(episode, step, agent)}).`;
  }

  gate(episode, step, agent) {
    const isExploring = episode.at("steps/is_exploring", step, agent) === 1, { ask_gate: gate } = this.run;
    if (gate === "exploiting") return isExploring ? ", had it not been exploring" : "";
    return gate !== "always" && !isExploring ? ", had it been exploring" : "";
  }

  howDrawn(episode, request, did) {
    if (this.run.consult) return `${this.run.consult.how}: ${did}.`;
    if (!this.isCons) return `It follows the majority: ${did}.`;
    const sureness = shown(episode.at("requests/confidence_after", request));
    if (episode.at("requests/is_best", request)) return `It takes the action that is now most likely, as it does with probability ${sureness}: ${did}.`;
    const excluded = excludedActions(episode, request);
    if (!excluded.length) return `It draws from all actions: ${did}.`;
    return `It leaves out ${listed(excluded.map((action) => this.name(action)))} and draws from the rest: ${did}.`;
  }

  ledTo(episode, step, agent) {
    const reward = episode.at("steps/rewards", step, agent);
    const rest = episode.returns[episode.numSteps][agent] - episode.returns[step + 1][agent];
    return `Its reward is ${signed(reward)} in this step and ${earned(rest)} from then to the end.`;
  }

  alone(episode, step, agent) {
    if (!episode.isSharing) return [];
    return [make("dl", { class: "facts-of" },
      ...this.asking((field) => episode.at(`steps/${field}`, step, agent)),
      this.budget(episode.at("steps/requests_left", step, agent)))];
  }

  parts(episode, step, agent, request) {
    const choices = this.choices(episode, step, agent, request), facts = this.facts(episode, step, agent, request);
    return [choices, ...(this.isCons ? whyLeftOut(this.run, episode, request) : []), facts, ...this.teachers.draw(episode, request)];
  }

  // Probabilities before and after, action by action, and who advised for and against.
  choices(episode, step, agent, request) {
    const isUsed = episode.isAdvised(request);
    const kind = this.run.consult?.kind ?? (this.isCons ? "after the answers" : "by votes");
    const key = make("p", { class: "key" }, make("span", { class: "swatch before" }), " before ", term("policy", this.run),
      make("span", { class: "swatch after" }), ` ${kind} `, ...(this.isCons ? [term("policy_after", this.run)] : []),
      isUsed ? "" : ", not used", ...(this.isCons ? [make("span", { class: "swatch" }), term("modified", this.run), " in between"] : []),
      make("span", { class: "scale" }, "bars: probability from 0 to 1, in every step and run"));
    const actions = [...Array(episode.numActions).keys()];
    return make("div", { class: `choices${isUsed ? "" : " is-unused"}`, role: "list" }, key,
      ...actions.map((action) => this.choice(episode, step, agent, request, action)));
  }

  choice(episode, step, agent, request, action) {
    const number = (field) => episode.at(`requests/${field}`, request, action);
    const before = number("policy_before"), after = number("policy_after"), modified = number("modified");
    const isOut = episode.at("absorbed/is_excluded", request, action) === 1;
    const change = make("small", { class: "n" }, this.isCons ? signed(after - before, 3) : this.scored(modified));
    const moved = this.isCons ? make("small", { class: "n" }, "p̃ ", figure("span", "modified", modified, 3)) : "";
    return make("div", { class: `choice${isOut ? " is-out" : ""}`, role: "listitem", "data-action": action, "data-modified": String(modified) },
    make("div", { class: "choice-head" }, make("b", {}, this.name(action)), this.marks(episode, step, agent, request, action, isOut)),
    make("div", { class: "bar-line" }, bar(before, "before"), figure("span", "policy_before", before, 3, { class: "n" }), moved),
    make("div", { class: "bar-line" }, bar(after, "after"), figure("span", "policy_after", after, 3, { class: "n" }), change));
  }

  // The votes for an action; if agents consult each other, the team's scores.
  scored(score) {
    const unit = this.run.consult?.unit ?? "vote";
    return unit === "vote" ? counted(Math.floor(score), "vote") : `${unit} ${shown(score, 2)}`;
  }

  // Whether the student does it, would have done it or leaves it out, and for whom it is best or worst.
  marks(episode, step, agent, request, action, isOut) {
    const own = episode.at("steps/own_action", step, agent), did = episode.at("steps/action", step, agent);
    const naming = (field) => episode.teachersOf(request).filter(
      (teacher) => episode.at(`teachers/${field}`, request, teacher) === action);
    const best = naming("best_action"), worst = this.isCons ? naming("worst_action") : [];
    const marks = make("span", { class: "marks-of" });
    if (action === did) marks.append(make("b", { class: "tag did" }, "does"));
    if (action === own && own !== did) marks.append(make("b", { class: "tag own" }, "would have"));
    if (isOut) marks.append(make("b", { class: "tag out" }, "left out"));
    if (best.length) marks.append(make("span", { class: "word" }, "best for ", agentChips(best)));
    if (worst.length) marks.append(make("span", { class: "word" }, "worst for ", agentChips(worst)));
    return marks;
  }

  facts(episode, step, agent, request) {
    const ofStep = (field) => episode.at(`steps/${field}`, step, agent);
    const ofRequest = (field) => episode.at(`requests/${field}`, request);
    const list = make("dl", { class: "facts-of" }, ...this.asking(ofStep)), named = (words, key) => [words, term(key, this.run)];
    const negative = ofRequest("negative_weight");
    if (this.isCons) list.append(
      fact(named("Weight of negative knowledge ", "negative"), "negative_weight", negative, 3),
      fact(named("Weight of positive knowledge ", "positive"), "positive_weight", Math.fround(1 - negative), 3),
      fact(named("Confidence afterwards ", "confidence_after"), "confidence_after", ofRequest("confidence_after"), 3),
      fact(named("Actions left out ", "excluded"), "num_excluded", ofRequest("num_excluded"), 0));
    list.append(...(this.run.consult ? [] : [this.budget(ofStep("requests_left"))]), fact("Reward", "rewards", ofStep("rewards"), 2));
    return list;
  }

  asking(ofStep) {
    if (this.run.consult) return [];
    return [fact(["Probability of asking ", term("ask", this.run)], "ask_probability", ofStep("ask_probability"), 3),
      fact(["Times seen, including now ", term("visits", this.run)], "num_visits", ofStep("num_visits"), 0)];
  }

  budget(left) { return fact(["Requests left ", term("budget", this.run)], "requests_left", left, 0); }
}
