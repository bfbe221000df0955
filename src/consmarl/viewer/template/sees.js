// What an agent's network is given in a step, and what it outputs.
class Sees {
  constructor(run, who, body) {
    Object.assign(this, { run, who, body });
  }

  // Values of all agents, steps and runs side by side share one scale, which ends at `most`.
  draw(episode, step, agent, most) {
    this.who.replaceChildren("What agent ", agentChip(agent), " sees");
    if (step >= episode.numSteps) { this.body.replaceChildren(make("p", { class: "empty" }, "The episode is over.")); return; }
    const parts = [this.values(episode, step, agent, most)];
    if ("sees/codes" in episode.arrays) parts.unshift(this.window(episode, step, agent));
    else parts.unshift(make("p", { class: "empty" }, "Observations of this environment are not recorded."));
    this.body.replaceChildren(...parts);
  }

  // The observation as the network gets it: codes times scale, one grid per channel.
  window(episode, step, agent) {
    const { features, channels, view: [rows, columns], scale } = this.run.world;
    const codes = episode.row("sees/codes", step, agent);
    const seen = Array.from(codes, (code, place) => Math.fround(code * Math.fround(scale[place])));
    const grids = make("div", { class: "channels" });
    channels.forEach((channel, number) => {
      const grid = make("div", { class: "channel-grid", role: "img", "aria-label": `channel ${channel}` });
      grid.style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
      for (let cell = 0; cell < rows * columns; cell++) {
        const value = seen[features.length + cell * channels.length + number];
        const isMiddle = cell === (rows * columns - 1) / 2;
        const text = value ? shown(value, 2).replace(/^0\./, ".") : "";
        const place = make("span", { class: isMiddle ? "middle" : "", "data-value": String(value), title: String(value) }, text);
        place.style.setProperty("--level", value);
        grid.append(place);
      }
      grids.append(make("figure", {}, grid, make("figcaption", {}, channel)));
    });
    const list = make("dl", { class: "facts-of" });
    features.forEach((feature, place) => list.append(fact(feature, `feature-${feature}`, seen[place], 2)));
    return make("div", {}, grids, list);
  }

  values(episode, step, agent, most) {
    const values = episode.row("steps/values", step, agent);
    const isAllowed = values.map((_, action) => !episode.arrays["steps/allowed"] || episode.at("steps/allowed", step, agent, action));
    const best = values.indexOf(Math.max(...values.filter((_, action) => isAllowed[action])));
    const title = make("h4", {}, this.run.has_values ? "Its Q-values" : "Its scores",
      make("span", { class: "scale" }, ` bars: ${shown(-most, 2)} to ${shown(most, 2)}, the same throughout this episode`));
    const list = make("div", { class: "values", role: "list" });
    values.forEach((value, action) => {
      const mark = !isAllowed[action] ? " is-forbidden" : action === best ? " is-best" : "";
      const line = make("div", { class: `value-line${mark}`, role: "listitem" });
      const track = make("span", { class: "both-ways" }), fill = make("span", { class: value < 0 ? "fill below" : "fill" });
      fill.style.width = `${Math.abs(value) / most * 50}%`;
      track.append(fill);
      const name = isAllowed[action] ? this.run.actions[action] : `${this.run.actions[action]} (not allowed)`;
      line.append(make("span", { class: "name" }, name), track,
        figure("span", "values", value, 3, { class: "n", "data-action": action }));
      list.append(line);
    });
    return make("div", {}, title, list);
  }
}
