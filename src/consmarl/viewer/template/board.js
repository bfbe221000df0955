// The environment in a step: the board, the agents, what they are about to do, and the answers they get.
const DIRECTIONS = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };
const SIGNS = { changed: "!", advised: "✓", asked: "?" };
const MOST_ARROWS = 12; // for students other than the chosen one; more would hide the board

class Board {
  constructor(run, element, choose) {
    Object.assign(this, { run, element, choose });
    const [rows, columns] = run.world?.grid ?? [9, 9];
    this.width = columns * data.cell;
    this.height = rows * data.cell;
    const margin = 6;
    element.setAttribute("viewBox", `${-margin} ${-margin} ${this.width + 2 * margin} ${this.height + 2 * margin}`);
    element.style.aspectRatio = `${this.width} / ${this.height}`;
    element.append(this.ground(rows, columns));
    this.layers = {};
    for (const name of ["below", "seen", "arrows", "pointers", "agents", "above", "marks"])
      element.append(this.layers[name] = make("g", { class: name }));
    this.tokens = Array.from({ length: run.num_agents }, (_, agent) => this.token(agent));
    this.layers.agents.append(...this.tokens);
  }

  ground(rows, columns) {
    const ground = make("g", { class: "ground" }, make("rect", { x: 0, y: 0, width: this.width, height: this.height }));
    if (!this.run.world) return ground;
    let lines = "";
    for (let row = 1; row < rows; row++) lines += `M0 ${row * data.cell}H${this.width}`;
    for (let column = 1; column < columns; column++) lines += `M${column * data.cell} 0V${this.height}`;
    ground.append(make("path", { d: lines }));
    return ground;
  }

  token(agent) {
    const about = { class: `token ${agentClass(agent)}`, role: "button", tabindex: -1, "aria-label": `agent ${agent}` };
    const token = make("g", about, make("circle", { r: 0.5 }), make("text", { "font-size": agent < 10 ? 0.62 : 0.5 }, String(agent)));
    token.addEventListener("click", () => this.choose(agent));
    return token;
  }

  // Where an agent is drawn: its centre and half its side. If the environment cannot be drawn, agents stand in a ring.
  place(episode, step, agent) {
    if ("scene/agents" in episode.arrays) {
      const [left, top, side] = episode.row("scene/agents", step, agent);
      return { x: left + side / 2, y: top + side / 2, radius: side / 2 };
    }
    const angle = 2 * Math.PI * agent / this.run.num_agents - Math.PI / 2, away = this.width * 0.4;
    const radius = Math.min(18, Math.PI * away / this.run.num_agents * 0.8);
    return { x: this.width / 2 + away * Math.cos(angle), y: this.height / 2 + away * Math.sin(angle), radius };
  }

  draw(episode, step, chosen, allArrows) {
    const places = this.tokens.map((_, agent) => this.place(episode, step, agent));
    if (this.run.world) {
      this.layers.below.innerHTML = this.shapes(episode, "below", step);
      this.layers.above.innerHTML = this.shapes(episode, "above", step);
      this.drawSeen(episode, step, chosen);
    } else {
      this.layers.below.replaceChildren(...this.ownPicture(episode, step));
    }
    places.forEach(({ x, y, radius }, agent) => {
      const token = this.tokens[agent];
      token.setAttribute("transform", `translate(${x} ${y}) scale(${2 * radius})`);
      token.setAttribute("aria-pressed", agent === chosen);
    });
    this.layers.marks.replaceChildren(...this.marks(episode, step, places, chosen));
    this.layers.pointers.replaceChildren(...this.pointers(episode, step, places));
    const arrows = this.arrows(episode, step, places, chosen, allArrows);
    this.layers.arrows.replaceChildren(...arrows.drawn);
    return arrows.areMany;
  }

  // The environment's own picture, inside the ring of agents.
  ownPicture(episode, step) {
    const address = episode.facts.pictures?.[step];
    if (!address) return [];
    const side = this.width * 0.48, left = (this.width - side) / 2, top = (this.height - side) / 2;
    const place = { x: left, y: top, width: side, height: side };
    return [make("image", { class: "own", href: address, ...place }), make("rect", { class: "frame", ...place })];
  }

  shapes(episode, layer, step) {
    const ends = episode.arrays[`scene/${layer}_ends`].numbers;
    const numbers = episode.arrays[`scene/${layer}`].numbers.subarray(step ? ends[step - 1] : 0, ends[step]);
    return Array.from(numbers, (number) => episode.facts.shapes[number]).join("");
  }

  drawSeen(episode, step, chosen) {
    const [row, column] = episode.row("scene/cells", step, chosen);
    const [rows, columns] = this.run.world.grid, [high, wide] = this.run.world.view.map((side) => (side - 1) / 2);
    const top = Math.max(0, row - high), left = Math.max(0, column - wide);
    const bottom = Math.min(rows, row + high + 1), right = Math.min(columns, column + wide + 1);
    this.layers.seen.replaceChildren(make("rect", {
      class: agentClass(chosen), x: left * data.cell, y: top * data.cell,
      width: (right - left) * data.cell, height: (bottom - top) * data.cell,
    }));
  }

  // Rings and signs of different shapes: whose choice changed, who was advised, who asked without effect.
  marks(episode, step, places, chosen) {
    const marks = [];
    const { x, y, radius } = places[chosen];
    marks.push(make("circle", { class: "chosen", cx: x, cy: y, r: radius + 3 }));
    for (const [student, request] of episode.requestsBy[step] ?? []) {
      const place = places[student], kind = this.kindOf(episode, request);
      const away = place.radius * 0.8, size = Math.min(1, place.radius / 12);
      const where = `translate(${place.x + away} ${place.y - away}) scale(${size})`;
      marks.push(make("g", { class: `sign ${kind}`, transform: where }, make("circle", { r: 6.5 }), make("text", {}, SIGNS[kind])));
    }
    return marks;
  }

  kindOf(episode, request) {
    return episode.isChanged(request) ? "changed" : episode.isAdvised(request) ? "advised" : "asked";
  }

  // What agents do: a filled pointer. What a student would have done instead: a hollow one.
  pointers(episode, step, places) {
    if (step >= episode.numSteps) return [];
    return places.flatMap((place, agent) => {
      const did = episode.at("steps/action", step, agent), own = episode.at("steps/own_action", step, agent);
      const drawn = [this.pointer(place, agent, did, "did")];
      if (own !== did) drawn.push(this.pointer(place, agent, own, "own"));
      return drawn.filter(Boolean);
    });
  }

  pointer({ x, y, radius }, agent, action, kind) {
    const direction = DIRECTIONS[this.run.actions[action]];
    if (!direction) return null;
    const angle = Math.atan2(direction[1], direction[0]) * 180 / Math.PI;
    const tip = radius + 12, foot = radius + 5;
    return make("path", { class: `pointer ${kind} ${agentClass(agent)}`, d: `M${tip} 0L${foot} -5V5Z`,
      transform: `translate(${x} ${y}) rotate(${angle})` });
  }

  arrows(episode, step, places, chosen, allArrows) {
    const drawn = [], others = [];
    for (const [student, request] of episode.requestsBy[step] ?? []) {
      for (const teacher of episode.teachersOf(request)) {
        if (isExpert(teacher)) continue; // not on the board
        const arrow = this.arrow(places[teacher], places[student], teacher, student === chosen);
        (student === chosen ? drawn : others).push(arrow);
      }
    }
    const isHidden = others.length > MOST_ARROWS && !allArrows;
    return { drawn: isHidden ? drawn : [...others, ...drawn], areMany: others.length > MOST_ARROWS };
  }

  // From the teacher to the student, curved, so that answers in both directions stay apart.
  arrow(from, to, teacher, isChosen) {
    const across = to.x - from.x, down = to.y - from.y, far = Math.hypot(across, down) || 1;
    const bend = Math.min(24, far * 0.18);
    const middle = [(from.x + to.x) / 2 - down / far * bend, (from.y + to.y) / 2 + across / far * bend];
    const start = Board.edge(from, middle, 2), end = Board.edge(to, middle, 6);
    const angle = Math.atan2(to.y - middle[1], to.x - middle[0]) * 180 / Math.PI;
    return make("g", { class: `arrow ${agentClass(teacher)}${isChosen ? " is-chosen" : ""}`, "data-teacher": teacher },
      make("path", { class: "shaft", d: `M${start}Q${middle} ${end}` }),
      make("path", { class: "head", d: "M3 0L-6 -4.5V4.5Z", transform: `translate(${end}) rotate(${angle})` }));
  }

  static edge({ x, y, radius }, [towardsX, towardsY], gap) {
    const far = Math.hypot(towardsX - x, towardsY - y) || 1, share = (radius + gap) / far;
    return [x + (towardsX - x) * share, y + (towardsY - y) * share].map((each) => each.toFixed(1));
  }
}
