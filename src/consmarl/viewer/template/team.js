// All agents in a step, one row each, to compare and to choose from.
class Team {
  constructor(run, table, choose) {
    Object.assign(this, { run, table, choose });
    const head = heads(["Agent", "Asks", "Answers", "Does", "Reward", "So far"], (words) => ["Reward", "So far"].includes(words));
    for (const icon of run.world?.heads ?? []) head.rows[0].append(this.icon(icon));
    table.append(head, this.body = make("tbody", {}));
  }

  icon(shapes) {
    const drawing = make("svg", { viewBox: `0 0 ${this.run.world.icon} ${this.run.world.icon}`, class: "icon" });
    drawing.innerHTML = shapes;
    return make("th", { scope: "col" }, drawing);
  }

  draw(episode, step, chosen) {
    const agents = [...Array(this.run.num_agents).keys()];
    this.body.replaceChildren(...agents.map((agent) => this.line(episode, step, agent, chosen)));
  }

  line(episode, step, agent, chosen) {
    const isOver = step >= episode.numSteps, request = isOver ? undefined : episode.requestOf(step, agent);
    const button = make("button", { type: "button", class: "pick", "aria-label": `agent ${agent}`, "data-focus": `agent-${agent}` }, agentChip(agent));
    const line = row(button, this.asks(episode, step, agent, request, isOver), this.answers(episode, request),
      isOver ? "" : this.does(episode, step, agent),
      isOver ? make("td", {}) : figure("td", "rewards", episode.at("steps/rewards", step, agent), 2, { class: "n" }),
      make("td", { class: "n" }, earned(episode.returns[step][agent])), ...this.gauges(episode, step, agent));
    line.addEventListener("click", () => this.choose(agent));
    line.dataset.agent = agent;
    if (agent === chosen) line.setAttribute("aria-current", "true");
    return line;
  }

  asks(episode, step, agent, request, isOver) {
    if (isOver || !episode.isSharing) return make("td", { class: "quiet-cell" }, "–");
    const probability = shown(episode.at("steps/ask_probability", step, agent), 2);
    if (request === undefined) return make("td", { class: "quiet-cell" }, `no (${probability})`);
    return make("td", {}, `yes (${probability})`);
  }

  answers(episode, request) {
    if (request === undefined) return make("td", { class: "given" });
    const teachers = episode.teachersOf(request);
    return teachers.length ? make("td", { class: "given" }, agentChips(teachers)) : make("td", { class: "quiet-cell" }, "nobody");
  }

  does(episode, step, agent) {
    const did = episode.at("steps/action", step, agent), own = episode.at("steps/own_action", step, agent);
    const words = make("td", { class: "does" }, this.run.actions[did]);
    if (own !== did) words.append(make("s", { title: "what it would have done" }, this.run.actions[own]));
    return words;
  }

  gauges(episode, step, agent) {
    if (!this.run.world?.heads.length) return [];
    return Array.from(episode.row("scene/gauges", step, agent), (number) => {
      const gauge = episode.facts.gauges[number];
      if (gauge.number) return make("td", { class: "gauge-cell" }, gauge.number);
      const track = make("span", { class: `gauge${gauge.is_complete ? " is-complete" : ""}` }), fill = make("span", {});
      fill.style.width = `${gauge.share ? Math.max(gauge.share * 100, 8) : 0}%`;
      fill.style.background = gauge.colour;
      track.append(fill);
      return make("td", { class: "gauge-cell" }, track);
    });
  }
}
