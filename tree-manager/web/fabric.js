// The fabric under the trees: racks, the rates of links, and the load that a group's trees put on them.

/** Reads GET /v1/topology. A rack is a switch of level 1 with the hosts that are cabled to it. */
export function readFabric(topology) {
  const levels = new Map(topology.switches.map((one) => [one.name, one.level]));
  const hosts = new Map();  // host: {rack, rate}
  const racks = new Map();  // switch: {rate, links} of its links upwards
  for (const link of topology.links) {
    if (levels.has(link.from)) {
      const up = racks.get(link.from) || { rate: 0, links: 0 };
      racks.set(link.from, { rate: up.rate + link.rate_bits_per_second, links: up.links + 1 });
    } else {
      const host = hosts.get(link.from) || { rack: link.to, rate: 0 };
      hosts.set(link.from, { rack: host.rack, rate: host.rate + link.rate_bits_per_second });
    }
  }
  const assumed = topology.assumed_rate_bits_per_second || 0;
  const unknown = { rack: "", rate: topology.fabric === "flat" ? assumed : 0 };
  return {
    host: (name) => hosts.get(name) || unknown,
    rack: (name) => racks.get(name) || { rate: 0, links: 0 },
  };
}

/** Returns, for each link that the trees use, its name, rate, bytes per second in one direction, load, and the groups whose bytes it carries. All links above a
 * rack are one entry. */
export function linkLoads(trees, rateOfLane, fabric) {
  const loads = new Map();
  const add = (key, about, flow, group) => {
    const load = loads.get(key) || { ...about, bytes: 0, groups: new Set() };
    load.bytes += flow;
    if (flow > 0) load.groups.add(group);
    loads.set(key, load);
  };
  const along = (from, to, flow, group) => {
    if (from === to) return;
    const [a, b] = [fabric.host(from), fabric.host(to)];
    // A contribution goes up and a result comes down, so each edge loads both directions of each link alike.
    for (const [name, host] of [[from, a], [to, b]]) add("host " + name, { name: name + " – " + (host.rack || "fabric"), rate: host.rate }, flow, group);
    if (!a.rack || a.rack === b.rack) return;
    for (const rack of [a.rack, b.rack]) {
      const up = fabric.rack(rack);
      if (up.links) add("rack " + rack, { name: rack + " – above" + (up.links > 1 ? " (" + up.links + " links)" : ""), rate: up.rate }, flow, group);
    }
  };
  const walk = (node, flow, group) => {
    for (const child of node.children) {
      along(child.host, node.host, flow, group);
      if (child.children) walk(child, flow, group);
    }
  };
  trees.forEach((lane, i) => walk(lane.root, rateOfLane[i], lane.group));
  for (const load of loads.values()) load.used = load.rate ? (8 * load.bytes) / load.rate : 0;
  return loads;
}

/** The greatest load of a link on the way between two hosts. */
export function loadBetween(loads, fabric, from, to) {
  if (from === to) return 0;
  const keys = ["host " + from, "host " + to];
  const [a, b] = [fabric.host(from).rack, fabric.host(to).rack];
  if (a && a !== b) keys.push("rack " + a, "rack " + b);
  return Math.max(0, ...keys.map((key) => (loads.get(key) || { used: 0 }).used));
}

export const loadClass = (used) => (used >= 0.8 ? "bad" : used >= 0.5 ? "warn" : "good");
