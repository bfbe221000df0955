// Playing, stepping and scrubbing, and the strip that shows where something happens.
const STEPS_A_SECOND = 2;
const STRIP = { height: 34, reward: 10 };

class Player {
  constructor(app) {
    Object.assign(this, { app, timer: null });
    const part = (name) => document.querySelector(`[data-${name}]`);
    Object.assign(this, { scrub: part("scrub"), where: part("where"), strips: part("strips"), speed: part("speed") });
    this.playButton = document.querySelector("[data-do=play]");
    for (const button of document.querySelectorAll("[data-do]"))
      button.addEventListener("click", () => this.does(button.dataset.do));
    this.scrub.addEventListener("input", () => { this.pause(); app.goTo(Number(this.scrub.value)); });
    this.speed.addEventListener("change", () => { if (this.isPlaying) { this.pause(); this.play(); } });
    leaveWhenPicked(this.speed);
  }

  get isPlaying() { return this.timer !== null; }

  does(what) {
    const { app } = this;
    if (what === "play") { if (this.isPlaying) this.pause(); else this.play(); return; }
    this.pause();
    if (what === "first") app.goTo(0);
    if (what === "back") app.goTo(app.step - 1);
    if (what === "forth") app.goTo(app.step + 1);
    if (what === "last") app.goTo(app.numSteps);
    if (what === "change") this.toChange(1);
    if (what === "change back") this.toChange(-1);
  }

  play() {
    const { app } = this;
    if (app.step >= app.numSteps) app.goTo(0);
    this.timer = setInterval(() => {
      if (app.step >= app.numSteps) this.pause(); else app.goTo(app.step + 1);
    }, 1000 / (STEPS_A_SECOND * Number(this.speed.value)));
    this.name();
  }

  pause() {
    if (!this.isPlaying) return;
    clearInterval(this.timer);
    this.timer = null;
    this.name();
    this.app.remember();
  }

  name() {
    this.playButton.textContent = this.isPlaying ? "Pause" : "Play";
    this.playButton.setAttribute("aria-pressed", this.isPlaying);
  }

  faster(by) {
    const { options, selectedIndex } = this.speed;
    this.speed.selectedIndex = Math.max(0, Math.min(options.length - 1, selectedIndex + by));
    this.speed.dispatchEvent(new Event("change"));
  }

  // To the next step in which knowledge changed a choice, if there is one in this episode.
  toChange(direction) {
    const { app } = this;
    for (let step = app.step + direction; step >= 0 && step < app.numSteps; step += direction) {
      const pane = app.panes.find((each) => each.episode.numChanges(step) > 0);
      if (pane) { app.goTo(step, pane.episode.mostTelling(step, app.agent)); return; }
    }
    this.where.textContent = direction > 0 ? "no more changed choices" : "no earlier changed choices";
  }

  draw() {
    const { app } = this;
    this.scrub.value = app.step;
    this.scrub.setAttribute("aria-valuetext", `step ${app.step} of ${app.numSteps}`);
    const isOver = app.step >= app.numSteps;
    this.where.textContent = isOver ? `end, after ${counted(app.numSteps, "step")}` : `step ${app.step} of ${app.numSteps}`;
    for (const cursor of this.strips.querySelectorAll(".cursor")) cursor.setAttribute("x", Math.min(app.step, app.numSteps - 1));
  }

  drawStrips() {
    const { app } = this;
    this.scrub.max = app.numSteps;
    this.strips.replaceChildren(...app.panes.map((pane) => this.strip(pane)));
    document.querySelector("[data-strip-key]").hidden = app.panes.every((pane) => !pane.episode.isSharing);
  }

  // One column per step: how many asked, how many followed answers, whose choice changed; below, the team's reward.
  strip(pane) {
    const { episode } = pane, { height, reward } = STRIP, agents = episode.numAgents;
    const rewards = Array.from({ length: episode.numSteps }, (_, step) => episode.teamReward(step));
    const most = Math.max(...this.app.panes.map((each) => each.episode.mostReward)) || 1;
    const drawing = make("svg", {
      class: "strip", viewBox: `0 0 ${this.app.numSteps} ${height + 2 * reward}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `${pane.run.name}: requests, followed answers, changed choices and rewards by step`,
    });
    const column = (kind, step, top, size) => {
      if (size > 0) drawing.append(make("rect", { class: kind, x: step + 0.12, width: 0.76, y: top, height: size }));
    };
    drawing.append(make("rect", { class: "cursor", width: 1, y: 0, height: height + 2 * reward, x: 0 }));
    rewards.forEach((value, step) => {
      const counts = { asked: episode.requestsBy[step].size, advised: episode.numAdvised(step), changed: episode.numChanges(step) };
      for (const [kind, count] of Object.entries(counts)) column(kind, step, height * (1 - count / agents), height * count / agents);
      const tall = Math.abs(value) / most * reward;
      column(value > 0 ? "gain" : "loss", step, value > 0 ? height + reward - tall : height + reward, tall);
    });
    drawing.addEventListener("click", (event) => {
      const box = drawing.getBoundingClientRect();
      this.pause();
      this.app.goTo(Math.floor((event.clientX - box.left) / box.width * this.app.numSteps), null, pane);
    });
    const holder = make("div", { class: "strip-holder" }, drawing);
    if (this.app.panes.length > 1) holder.prepend(make("span", { class: "strip-name" }, pane.run.name));
    return holder;
  }
}
