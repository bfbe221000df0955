// With and without sharing: how the team's return differs, for each pair and on average.
const PAIRED = { left: 16, right: 16, axis: 24, gap: 6 };

class Paired {
  constructor(drawing, chooseEpisode) {
    Object.assign(this, { drawing, chooseEpisode, episodes: data.runs[0].episodes });
    const { differences, mean, bounds } = data.pairs;
    this.least = Math.min(0, ...differences, ...(bounds ?? []));
    this.most = Math.max(0, ...differences, ...(bounds ?? []));
    if (this.least === this.most) [this.least, this.most] = [-1, 1];
    new ResizeObserver(() => this.lay(differences, mean, bounds)).observe(drawing.parentElement);
  }

  // As wide as there is room, so that its text keeps its size.
  lay(differences, mean, bounds) {
    const { drawing } = this;
    this.width = drawing.clientWidth || 320;
    const dots = this.placed(differences), floor = 14 + PAIRED.gap * 2 * Math.max(...dots.map(({ level }) => level + 1));
    drawing.setAttribute("viewBox", `0 0 ${this.width} ${floor + PAIRED.axis}`);
    drawing.replaceChildren(...this.axis(floor), ...dots.map((dot) => this.dot(dot, floor)));
    if (bounds) drawing.append(make("line", { class: "bounds", x1: this.x(bounds[0]), x2: this.x(bounds[1]), y1: 7, y2: 7 }));
    drawing.append(make("path", { class: "mean", d: "M0 -6L6 0L0 6L-6 0Z", transform: `translate(${this.x(mean)} 7)` }));
    this.draw(this.key);
  }

  x(value) {
    return PAIRED.left + (value - this.least) / (this.most - this.least) * (this.width - PAIRED.left - PAIRED.right);
  }

  // Dots that would overlap are stacked.
  placed(differences) {
    const taken = new Map();
    return differences.map((value, pair) => {
      const column = Math.round(this.x(value) / (2 * PAIRED.gap)), level = taken.get(column) ?? 0;
      taken.set(column, level + 1);
      return { value, pair, level };
    });
  }

  axis(floor) {
    const ticks = [...new Set([this.least, 0, this.most])].filter((value) => value === 0 || Math.abs(this.x(value) - this.x(0)) > 40);
    return [make("line", { class: "rule floor", x1: PAIRED.left, x2: this.width - PAIRED.right, y1: floor, y2: floor }),
      make("line", { class: "begin", x1: this.x(0), x2: this.x(0), y1: 0, y2: floor }),
      ...ticks.map((value) => make("text", {
        x: this.x(value), y: floor + 16, "text-anchor": value === 0 ? "middle" : value === this.least ? "start" : "end",
      }, value === 0 ? "0" : signed(value, 1)))];
  }

  dot({ value, pair, level }, floor) {
    const about = this.episodes[pair];
    const dot = make("circle", { cx: this.x(value), cy: floor - PAIRED.gap * (2 * level + 1), r: 4.5, "data-key": about.key },
      make("title", {}, `${about.name}: ${signed(value)}`));
    dot.addEventListener("click", () => this.chooseEpisode(about.key));
    return dot;
  }

  draw(key) {
    this.key = key;
    for (const dot of this.drawing.querySelectorAll("[data-key]")) dot.classList.toggle("is-shown", dot.dataset.key === key);
  }
}
