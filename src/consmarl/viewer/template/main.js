// After a selection by mouse or touch, keys go back to the page; keyboard users stay in the list.
function leaveWhenPicked(select) {
  let isByPointer = false;
  select.addEventListener("pointerdown", () => { isByPointer = true; });
  select.addEventListener("keydown", () => { isByPointer = false; });
  select.addEventListener("change", () => { if (isByPointer) select.blur(); isByPointer = false; });
}

// What is shown: which runs, episode, step and agent. It is kept in the URL, so that a moment can be linked to.
class App {
  constructor() {
    this.all = data.runs.map((run) => new Pane(run, this));
    this.shownRuns = data.runs.length > 1 ? "both" : "0";
    Object.assign(this, { step: 0, agent: null, key: null });
    this.select = document.querySelector("[data-episode]");
    for (const about of data.runs[0].episodes)
      this.select.append(make("option", { value: about.key }, `${about.name} · ${about.note}`));
    this.select.addEventListener("change", () => this.chooseEpisode(this.select.value));
    leaveWhenPicked(this.select);
    setUpGlossary();
    const turn = data.pairs?.turn;
    if (turn) document.querySelector("[data-turn]").addEventListener("click", () => this.chooseEpisode(turn.key, turn.step, turn.agent));
    if (data.pairs) this.paired = new Paired(document.querySelector("[data-paired]"), (key) => this.chooseEpisode(key));
    this.player = new Player(this);
    this.setUpRuns();
    document.addEventListener("keydown", (event) => this.press(event));
    document.addEventListener("pointerdown", () => { this.isTabbing = false; });
    window.addEventListener("hashchange", () => this.recall());
  }

  get panes() { return this.shownRuns === "both" ? this.all : [this.all[Number(this.shownRuns)]]; }
  get mostValue() { return Math.max(...this.panes.map((pane) => pane.episode.mostValue)) || 1; }
  get numSteps() { return Math.max(...this.panes.map((pane) => pane.episode?.numSteps ?? 0)); }
  get isReady() { return this.all.every((pane) => pane.episode); } // reading the first episode takes a moment

  setUpRuns() {
    if (data.runs.length < 2) return;
    const tabs = document.querySelector("[data-runs]");
    tabs.hidden = false;
    for (const [which, words] of [["both", "Side by side"], ...data.runs.map((run, number) => [String(number), run.name])]) {
      const button = make("button", { type: "button", "data-which": which }, words);
      button.addEventListener("click", () => { this.shownRuns = which; this.lay(); this.remember(); });
      tabs.append(button);
    }
  }

  async chooseEpisode(key, step = 0, agent = null) {
    this.player.pause();
    this.key = key;
    const episodes = await Promise.all(this.all.map((pane) => pane.read(key)));
    if (this.key !== key) return; // another episode was chosen in the meantime
    this.select.value = key;
    this.step = step;
    this.keepingFocus(() => this.all.forEach((pane, place) => pane.choose(episodes[place])));
    this.agent = agent ?? this.agent ?? this.panes[0].episode.mostTelling(step);
    this.paired?.draw(key);
    this.lay();
    this.remember();
  }

  // Put the shown runs on the page, and say whether they start identically.
  lay() {
    if (!this.isReady) return;
    const holder = document.querySelector("[data-panes]");
    const elements = this.panes.map((pane) => pane.element);
    const isLaid = holder.childElementCount === elements.length && elements.every((each, place) => holder.children[place] === each);
    if (!isLaid) holder.replaceChildren(...elements); // this loses the focus
    holder.classList.toggle("is-pair", this.panes.length > 1);
    for (const button of document.querySelectorAll("[data-which]"))
      button.setAttribute("aria-pressed", button.dataset.which === this.shownRuns);
    const note = document.querySelector("[data-same-start]");
    note.hidden = this.panes.length < 2;
    if (!note.hidden) note.textContent = this.sameStart();
    this.player.drawStrips();
    this.goTo(this.step);
  }

  sameStart() {
    const [left, right] = this.panes.map((pane) => pane.episode.about.start);
    if (!left || !right) return "";
    return left === right ? "Both start identically." : "They start differently. Staged episodes have the same start in all runs; recorded ones only if seed and num_envs are equal.";
  }

  goTo(step, agent = null, pane = null) {
    if (!this.isReady) return;
    this.step = Math.max(0, Math.min(this.numSteps, step));
    if (pane) agent = pane.episode.mostTelling(this.step, this.agent);
    if (agent !== null) this.agent = agent;
    this.keepingFocus(() => { for (const each of this.panes) each.draw(this.step, this.agent); });
    this.player.draw();
    if (!this.player.isPlaying) this.remember();
    document.documentElement.dataset.drawn = `${this.key}/${this.step}/${this.agent}`;
  }

  // The focused element is redrawn with the rest: its replacement takes over the focus.
  keepingFocus(draw) {
    const focused = document.activeElement, name = focused?.dataset.focus;
    const pane = name && this.panes.find((each) => each.element.contains(focused));
    const alike = () => [...pane.element.querySelectorAll(`[data-focus="${CSS.escape(name)}"]`)];
    const place = pane ? alike().indexOf(focused) : -1;
    draw();
    if (place >= 0 && !focused.isConnected) (alike()[place] ?? alike()[0])?.focus({ preventScroll: true });
  }

  chooseAgent(agent) {
    const count = data.runs[0].num_agents;
    this.goTo(this.step, (agent + count) % count);
  }

  remember() {
    const words = { episode: this.key, step: this.step, agent: this.agent };
    if (data.runs.length > 1) words.runs = this.shownRuns;
    const address = `#${new URLSearchParams(words)}`;
    if (address !== location.hash) history.replaceState(null, "", address);
  }

  // Show what the URL says, as far as it exists; otherwise where a pair begins to differ, or the first episode in which
  // something happens.
  async recall() {
    const words = new URLSearchParams(location.hash.slice(1)), turn = data.pairs?.turn;
    if (!location.hash && turn) { await this.chooseEpisode(turn.key, turn.step, turn.agent); return; }
    const { episodes, num_agents: numAgents } = data.runs[0];
    const about = episodes.find((each) => each.key === words.get("episode")) ??
      episodes.find((each) => each.summary.changed > 0) ?? episodes[0];
    const told = (name, most) => {
      const number = Number(words.get(name) ?? NaN);
      return Number.isInteger(number) && number >= 0 && number <= most ? number : null;
    };
    if (data.runs.length > 1 && ["both", "0", "1"].includes(words.get("runs"))) this.shownRuns = words.get("runs");
    const longest = Math.max(...data.runs.map((run) => run.episodes.find((each) => each.key === about.key).num_steps));
    await this.chooseEpisode(about.key, told("step", longest) ?? 0, told("agent", numAgents - 1));
    const isEventless = this.panes[0].episode.numChanges(0) === 0;
    if (!words.has("step") && about.summary.changed > 0 && isEventless) this.player.toChange(1);
  }

  press(event) {
    const { target } = event, isTyping = target.matches("select, textarea, input:not([type=range]):not([type=checkbox])");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return; // lists use Home, End and letters themselves
    if (event.key === "Escape" && leaveNote()) return;
    if (event.key === "Tab") this.isTabbing = true;
    const isWide = target.matches(".scroll") && target.scrollWidth > target.clientWidth;
    if (event.key.startsWith("Arrow") && isWide && this.isTabbing) return; // these scroll a wide table for keyboard users
    const isButton = target.matches("button, summary, input[type=checkbox]");
    if (event.key === " " && isButton) return; // the space bar presses the button
    const { episodes } = data.runs[0], at = episodes.findIndex((each) => each.key === this.key);
    const actions = {
      " ": () => this.player.does("play"), ArrowRight: () => this.player.does("forth"), ArrowLeft: () => this.player.does("back"),
      n: () => this.player.does("change"), p: () => this.player.does("change back"),
      j: () => this.chooseAgent(this.agent + 1), k: () => this.chooseAgent(this.agent - 1),
      "[": () => { if (at > 0) this.chooseEpisode(episodes[at - 1].key); },
      "]": () => { if (at < episodes.length - 1) this.chooseEpisode(episodes[at + 1].key); },
      "+": () => this.player.faster(1), "-": () => this.player.faster(-1),
      Home: () => this.player.does("first"), End: () => this.player.does("last"),
    };
    const digit = /^[0-9]$/.test(event.key) && Number(event.key) < data.runs[0].num_agents;
    if (!(event.key in actions) && !digit) return;
    event.preventDefault();
    if (digit) this.chooseAgent(Number(event.key)); else actions[event.key]();
  }
}

const TOO_OLD = "This browser is too old to unpack the episodes: use one from 2023 or later.";
if ("DecompressionStream" in window) new App().recall();
else document.querySelector("main").replaceChildren(make("p", { class: "lead" }, TOO_OLD));
