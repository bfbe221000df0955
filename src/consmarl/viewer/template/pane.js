// One run on the page: its environment, the chosen agent's exchange, its team, and its sharing over time.
class Pane {
  constructor(run, app) {
    Object.assign(this, { run, app, episodes: new Map() });
    this.element = document.getElementById("pane").content.firstElementChild.cloneNode(true);
    const part = (name) => this.element.querySelector(`[data-${name}]`);
    Object.assign(this, { lines: part("lines"), returned: part("return") });
    part("run-name").textContent = run.name;
    const choose = (agent) => app.chooseAgent(agent);
    this.board = new Board(run, part("board"), choose);
    this.exchange = new Exchange(run, part("who"), part("tells"), part("exchange"));
    this.team = new Team(run, part("team"), choose);
    this.sees = new Sees(run, part("sees-who"), part("sees"));
    this.overTime = new OverTime(run, part("over-time"), (key) => app.chooseEpisode(key));
    this.allArrows = part("all-arrows");
    this.allArrows.addEventListener("change", () => this.draw(app.step, app.agent));
    this.drawLegend(part("legend"));
  }

  async read(key) {
    const about = this.run.episodes.find((each) => each.key === key);
    if (!this.episodes.has(key)) this.episodes.set(key, await Episode.read(about));
    return this.episodes.get(key);
  }

  choose(episode) {
    this.episode = episode;
    this.overTime.draw(episode);
  }

  draw(step, agent) {
    const { episode } = this;
    if (!episode) return; // still loading
    const now = Math.min(step, episode.numSteps);
    const areMany = this.board.draw(episode, now, agent, this.allArrows.checked);
    this.allArrows.parentElement.hidden = !areMany;
    const isDrawn = "scene/lines" in episode.arrays;
    this.lines.textContent = isDrawn ? episode.facts.lines[episode.at("scene/lines", now)].join(" · ") : "";
    this.returned.replaceChildren("team return ", make("b", {}, earned(episode.teamReturn(now))));
    this.exchange.draw(episode, now, agent);
    this.team.draw(episode, now, agent);
    this.sees.draw(episode, now, agent, this.app.mostValue);
  }

  drawLegend(list) {
    const entry = (drawing, words) => list.append(make("li", {}, drawing, words));
    const drawn = (shapes, side) => {
      const drawing = make("svg", { viewBox: `0 0 ${side} ${side}`, class: "icon" });
      drawing.innerHTML = shapes;
      return drawing;
    };
    for (const [shapes, words] of this.run.world?.legend ?? []) entry(drawn(shapes, this.run.world.icon), words);
    const sign = (kind) => `<g class="sign ${kind}" transform="translate(10 10)"><circle r="7.5"/><text>${SIGNS[kind]}</text></g>`;
    const shaft = '<path class="shaft" d="M1 10H13"/><path class="head" d="M19 10L11 5.5V14.5Z"/>';
    if (this.run.sharing !== "none") {
      entry(drawn(sign("asked"), 20), "asks without effect");
      entry(drawn(sign("advised"), 20), "follows the answers, but would have done the same");
      entry(drawn(sign("changed"), 20), "does something else because of the answers");
      entry(drawn('<path class="pointer did a0" d="M16 10L6 5V15Z"/>', 20), "does");
      entry(drawn('<path class="pointer own a0" d="M16 10L6 5V15Z"/>', 20), "would have done");
      entry(drawn(`<g class="arrow a0 is-chosen">${shaft}</g>`, 20), "answer, in the teacher's colour");
    }
    const frame = '<g class="seen"><rect class="a0" x="2" y="2" width="16" height="16"/></g>';
    if (this.run.world) entry(drawn(frame, 20), "what the chosen agent sees");
  }
}
