// Small helpers used by every part of the page. theme.js comes before it.
const data = JSON.parse(document.getElementById("data").textContent);
const REPLIES = data.replies;

// A number formatted for reading; the exact value is in data-value and in the title.
function shown(value, decimals = 3) {
  const size = Math.abs(value);
  const text = size > 0 && size < 0.5 * 10 ** -decimals ? value.toExponential(0) : value.toFixed(decimals);
  return text.replaceAll("-", "−");
}

function signed(value, decimals = 2) {
  return (value > 0 ? "+" : "") + shown(value, decimals);
}

// A sum of rewards, without single-precision rounding errors.
function settled(value) {
  return Math.abs(value) < 5e-5 ? 0 : value;
}

function earned(value) {
  return signed(settled(value));
}

function counted(number, thing) {
  return `${whole(number)} ${thing}${number === 1 ? "" : "s"}`;
}

function whole(number) {
  return number.toLocaleString("en-US").replace("-", "−");
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

// An element that shows a number of the record, labelled with its field.
function figure(name, field, value, decimals, attributes = {}) {
  const text = decimals === 0 ? whole(value) : shown(value, decimals);
  return make(name, { "data-field": field, "data-value": String(value), title: String(value), ...attributes }, text);
}

// Teachers are numbered like this: the agents, and after them the experts beside the team.
function isExpert(teacher) {
  return teacher >= data.runs[0].num_agents;
}

function teacherName(teacher) {
  return isExpert(teacher) ? `expert ${teacher - data.runs[0].num_agents}` : `agent ${teacher}`;
}

function agentClass(agent) {
  return `a${agent % 8}`;
}

// A disc for an agent, a square for an expert.
function agentChip(agent) {
  if (!isExpert(agent)) return make("span", { class: `agent ${agentClass(agent)}` }, String(agent));
  const number = agent - data.runs[0].num_agents;
  return make("span", { class: `agent expert ${agentClass(number)}`, title: teacherName(agent) }, `E${number}`);
}

function agentChips(agents) {
  const chips = make("span", { class: "agents" });
  for (const agent of agents) chips.append(agentChip(agent));
  return chips;
}

// A row of a table; anything that is not a cell yet becomes one.
function row(...cells) {
  const isCell = (cell) => cell instanceof Node && ["TD", "TH"].includes(cell.tagName);
  return make("tr", {}, ...cells.map((cell) => (isCell(cell) ? cell : make("td", {}, cell))));
}

function rowHead(...content) {
  return make("th", { scope: "row" }, ...content);
}

// A table's header row; headers of numeric columns are right-aligned. Some headers are more than a word.
function heads(words, isNumber, contents = {}) {
  const cells = words.map((head) => make("th", { scope: "col", class: isNumber(head) ? "n" : "" }, ...(contents[head] ?? [head])));
  return make("thead", {}, make("tr", {}, ...cells));
}

// A label, perhaps with a symbol, and the number it names.
function fact(words, field, value, decimals) {
  return make("div", {}, make("dt", {}, ...[words].flat()), figure("dd", field, value, decimals));
}

function scrolling(content, kind = "") {
  return make("div", { class: `scroll ${kind}`, tabindex: 0 }, content);
}

function bar(share, kind) {
  const track = make("span", { class: `track ${kind}` });
  const fill = make("span", { class: "fill" });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  track.append(fill);
  return track;
}
