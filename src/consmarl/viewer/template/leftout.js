// Why a student left actions out of its draw, or none: targeted exploration, Algorithm 1 of the paper.

// Whether the student might not take an action at all: such actions are no part of the draw, however sure it is.
function isForbidden(episode, request, action) {
  if (!episode.arrays["steps/allowed"]) return false;
  return !episode.at("steps/allowed", episode.at("requests/step", request), episode.at("requests/student", request), action);
}

// The actions that were left out, the least likely first.
function excludedActions(episode, request) {
  const after = episode.row("requests/policy_after", request);
  return [...after.keys()].filter((action) => episode.at("absorbed/is_excluded", request, action) && !isForbidden(episode, request, action))
    .sort((left, right) => after[left] - after[right] || left - right);
}

function whyLeftOut(run, episode, request) {
  if (!episode.isAdvised(request)) return [];
  const excluded = excludedActions(episode, request), isBest = episode.at("requests/is_best", request) === 1;
  if (!isBest && !excluded.length) return [make("p", { class: "why" }, "No action is left out: in this run, students draw from all of them.")];
  const part = partOf(episode, request, isBest ? null : excluded.length);
  const told = isBest ? whyBest(run, part) : whyThese(run, episode, request, excluded, part);
  const { low, high, count } = part;
  return [make("p", { class: "why", "data-why": isBest ? "best" : "left-out", "data-low": low, "data-high": high, "data-count": count }, ...told)];
}

// The part of 0 to 1 that contains the new policy's confidence; its number is how many actions are left out.
function partOf(episode, request, recorded) {
  const numForbidden = [...Array(episode.numActions).keys()].filter((action) => isForbidden(episode, request, action)).length;
  const confidence = episode.at("requests/confidence_after", request), numParts = episode.numActions - numForbidden - 1;
  // where nothing was left out it is not recorded; it comes of a product in single precision
  const count = recorded ?? Math.max(1, Math.min(numParts, Math.ceil(Math.fround(confidence * numParts))));
  return { confidence, numParts, count, low: (count - 1) / numParts, high: count / numParts };
}

function leastLikely(count) { return count === 1 ? "least likely action" : `${count} least likely actions`; }

function sureness(run, confidence) {
  return ["The new policy’s confidence ", term("confidence_after", run), ` is ${shown(confidence)}`];
}

function whyBest(run, { confidence, count }) {
  return [make("b", {}, "Why no action is left out: "), ...sureness(run, confidence),
    ". With that probability the student simply takes the most likely action, which it did. " +
    `Otherwise it would have left out the ${leastLikely(count)}.`];
}

function whyThese(run, episode, request, excluded, { confidence, numParts, count, low, high }) {
  const names = excluded.map((action) => run.actions[action]), are = count === 1 ? "is" : "are";
  const likely = excluded.map((action, place) => `${names[place]} (${shown(episode.at("requests/policy_after", request, action))})`);
  const range = `${count > 1 ? `above ${shown(low, 2)}, ` : ""}at most ${shown(high, 2)}`;
  const cut = numParts === 1 ? "With two actions, that is always one" :
    `With ${numParts + 1} actions, the range from 0 to 1 is divided into ${numParts} equal parts, and ${shown(confidence)} is in part ${count} (${range})`;
  return [make("b", {}, `Why ${listed(names)} ${are} left out: `), ...sureness(run, confidence),
    `. ${cut}. So the ${leastLikely(count)} of the new policy ${are} left out (`, term("excluded", run), ` = ${count}): ${listed(likely)}. `,
    `${tied(episode, request, excluded)}The more certain the new policy, the fewer actions remain.`];
}

function tied(episode, request, excluded) {
  const after = episode.row("requests/policy_after", request), last = after[excluded.at(-1)];
  const isTied = [...after.keys()].some((action) => !excluded.includes(action) && after[action] === last);
  return isTied ? "Of equally likely actions, the first in the list is left out. " : "";
}
