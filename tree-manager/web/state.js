// The page's knowledge of the cluster: the last overview, rates by path over ten minutes, the chosen group.
const WINDOW_MS = 600000;
const OLD_MS = 20000;  // counts come with each renewal, every 5 s; after this time nothing flows
const PATHS = ["bytes_in_network", "bytes_between_ranks", "bytes_in_shared_memory"];

export const state = {
  overview: { aggregators: [], groups: [], fabric: null },
  groups: new Map(),       // by number
  aggregators: new Map(),  // by name
  chosen: null,            // number of the chosen group
  details: null,           // GET /v1/groups/{id} of it
  topology: null,
  search: "",
  onHost: null,            // numbers of the groups with a rank on the host that is searched; null: none is searched
};

const counts = new Map();    // group: {at, values, rates}
const samples = new Map();   // group, or "all": [{at, rates}]
const lastLate = new Map();  // "group rank": {at, lag} of the last overview in which the rank was late

const sum = (a, b) => a.map((value, i) => value + b[i]);
const nothing = [0, 0, 0];

/** The rate of a count is that of its last change: bytes by path, in bytes per second. */
function rateOf(group, now) {
  const values = PATHS.map((path) => group.traffic[path]);
  const before = counts.get(group.group);
  if (!before || values.some((value, i) => value < before.values[i])) {
    counts.set(group.group, { at: now, values, rates: nothing });
    return nothing;
  }
  if (values.some((value, i) => value !== before.values[i])) {
    const seconds = Math.max(0.5, (now - before.at) / 1000);
    const rates = values.map((value, i) => (value - before.values[i]) / seconds);
    counts.set(group.group, { at: now, values, rates });
    return rates;
  }
  return now - before.at > OLD_MS ? nothing : before.rates;
}

function remember(key, now, rates) {
  const list = samples.get(key) || [];
  list.push({ at: now, rates });
  while (list.length && list[0].at < now - WINDOW_MS) list.shift();
  samples.set(key, list);
}

function rememberLate(group, now) {
  for (const late of group.late) lastLate.set(group.group + " " + late.rank, { at: now, lag: late.lag_milliseconds });
}

export function takeOverview(overview, now) {
  const aggregators = overview.aggregators || state.overview.aggregators;
  state.overview = { ...overview, aggregators };
  state.groups = new Map(overview.groups.map((group) => [group.group, group]));
  state.aggregators = new Map(aggregators.map((one) => [one.name, one]));
  let all = nothing;
  for (const group of overview.groups) {
    group.rates = group.traffic ? rateOf(group, now) : nothing;
    all = sum(all, group.rates);
    remember(group.group, now, group.rates);
    rememberLate(group, now);
  }
  remember("all", now, all);
  for (const key of [...samples.keys()]) {
    if (key !== "all" && !state.groups.has(key)) {
      samples.delete(key);
      counts.delete(key);
    }
  }
  for (const [key, late] of lastLate) if (late.at < now - WINDOW_MS) lastLate.delete(key);
  if (!state.groups.has(state.chosen)) state.details = null;
}

export const trafficOf = (key) => samples.get(key) || [];
export const wasLate = (group, rank) => lastLate.get(group + " " + rank);
export const windowMs = WINDOW_MS;
export const total = (rates) => rates[0] + rates[1] + rates[2];
export const inTrees = (group) => group.lanes > 0;
