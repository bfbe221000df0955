// An episode's record as written by `packing.py`: arrays by name, unpacked when the episode is shown.
const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };

async function unpacked(block) {
  const text = document.getElementById(`block-${block}`).textContent;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const whole = await new Response(stream).arrayBuffer();
  const start = 8 + new DataView(whole).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 8, start - 8)));
  const arrays = {};
  for (const [name, [kind, shape, offset]] of Object.entries(header.arrays)) {
    const size = shape.reduce((product, side) => product * side, 1);
    arrays[name] = { shape, numbers: new ARRAYS[kind](whole, start + offset, size) };
  }
  return { facts: header.facts, arrays };
}

class Episode {
  static async read(about) {
    return new Episode(about, await unpacked(about.block));
  }

  constructor(about, { facts, arrays }) {
    Object.assign(this, { about, facts, arrays, numSteps: about.num_steps });
    [, this.numAgents, this.numActions] = arrays["steps/values"].shape;
    this.isSharing = "requests/step" in arrays;
    this.numTeachers = this.isSharing ? arrays["teachers/reply"].shape[1] : 0;
    this.requestsBy = Array.from({ length: this.numSteps }, () => new Map());
    if (this.isSharing) {
      const steps = arrays["requests/step"].numbers, students = arrays["requests/student"].numbers;
      steps.forEach((step, request) => this.requestsBy[step].set(students[request], request));
    }
    this.returns = this.sumRewards();
    this.mostValue = arrays["steps/values"].numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    this.mostReward = Math.max(...this.requestsBy.map((_, step) => Math.abs(this.teamReward(step))));
  }

  // An element of an array: `at("steps/values", step, agent, action)`.
  at(name, ...place) {
    const { shape, numbers } = this.arrays[name];
    return numbers[place.reduce((offset, index, axis) => offset * shape[axis] + index, 0)];
  }

  // A row of numbers along the last axis.
  row(name, ...place) {
    const { shape, numbers } = this.arrays[name];
    const start = place.reduce((offset, index, axis) => offset * shape[axis] + index, 0), length = shape.at(-1);
    return numbers.subarray(start * length, (start + 1) * length);
  }

  sumRewards() {
    const sums = [new Float64Array(this.numAgents)];
    for (let step = 0; step < this.numSteps; step++)
      sums.push(sums[step].map((sum, agent) => sum + this.at("steps/rewards", step, agent)));
    return sums;
  }

  teamReward(step) { return this.row("steps/rewards", step).reduce((sum, reward) => sum + reward, 0); }

  teamReturn(step) { return this.returns[step].reduce((sum, each) => sum + each, 0); }

  requestOf(step, agent) { return this.requestsBy[step]?.get(agent); }

  isAdvised(request) { return this.at("requests/is_advised", request) === 1; }

  isChanged(request) { return this.at("absorbed/is_changed", request) === 1; }

  teachersOf(request) {
    return [...this.row("teachers/reply", request).keys()].filter(
      (agent) => this.at("teachers/reply", request, agent) === REPLIES.ANSWERED);
  }

  numChanges(step) {
    return [...(this.requestsBy[step]?.values() ?? [])].filter((request) => this.isChanged(request)).length;
  }

  numAdvised(step) {
    return [...(this.requestsBy[step]?.values() ?? [])].filter((request) => this.isAdvised(request)).length;
  }

  // The most interesting agent: one whose choice changed, was advised, or asked; if there are several, the preferred one.
  mostTelling(step, preferred) {
    const requests = [...(this.requestsBy[step] ?? [])];
    for (const holds of [(request) => this.isChanged(request), (request) => this.isAdvised(request), () => true]) {
      const found = requests.filter(([, request]) => holds(request)).map(([agent]) => agent);
      if (found.length) return found.includes(preferred) ? preferred : found[0];
    }
    return preferred ?? 0;
  }
}
