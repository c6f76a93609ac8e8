// The tree of one lane over the fabric: aggregators, racks, hosts and ranks, folded where there are many.
import { draw, find } from "/web/dom.js";
import { loadBetween, loadClass } from "/web/fabric.js";
import { state } from "/web/state.js";
import { counted, percent, rate, whole } from "/web/words.js";

const LEAVES_UNFOLDED = 64, CHILDREN_FIRST = 24, NODES_FIRST = 120;
const ROW = 22, STEP_LEAST = 90, STEP_MOST = 420, STEP_ROOMY = 150, LABEL = 190, LABEL_OF_FOLDED = 330;
const opened = new Map();  // key of a node: the number of children that it shows

const named = (numbers) => (numbers.length === 1 ? "rank " + numbers[0] : "ranks " + ranges(numbers));

function ranges(numbers) {
  const parts = [];
  for (let i = 0; i < numbers.length;) {
    let j = i;
    while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) ++j;
    parts.push(i === j ? numbers[i] : numbers[i] + "–" + numbers[j]);
    i = j + 1;
  }
  return parts.length > 4 ? parts.slice(0, 3).join(", ") + ", …" : parts.join(", ");
}

function ranksBelow(node) {
  return node.children ? node.children.flatMap(ranksBelow) : [node.rank];
}

/** Joins the ranks of one parent that are in the same rack. */
function byRack(ranks, fabric) {
  const racks = new Map();
  for (const one of ranks) {
    const rack = fabric.host(one.host).rack;
    if (!racks.has(rack)) racks.set(rack, []);
    racks.get(rack).push(one);
  }
  return racks;
}

/** Returns the depth at which aggregators are folded, so that a large tree shows some hundred nodes at first. */
function depthOf(root) {
  let row = [root], depth = 0, count = 1;
  for (;;) {
    row = row.flatMap((node) => node.children.filter((child) => child.children));
    count += row.length;
    if (!row.length || count > NODES_FIRST) return depth;
    ++depth;
  }
}

class Folding {
  constructor(fabric, late, root) {
    this.fabric = fabric;
    this.late = late;
    this.many = ranksBelow(root).length > LEAVES_UNFOLDED;
    this.depth = this.many ? depthOf(root) : Infinity;
  }

  rank(one) {
    return { key: "rank " + one.rank, label: "rank " + one.rank, note: one.host, host: one.host, late: this.late.has(one.rank), numbers: [one.rank] };
  }

  ranks(list, parent) {
    if (!this.many) return list.map((one) => this.rank(one));
    return [...byRack(list, this.fabric)].map(([rack, members]) => {
      if (members.length === 1) return this.rank(members[0]);
      const key = parent + " rack " + rack;
      const numbers = members.map((one) => one.rank).sort((a, b) => a - b);
      const hosts = new Set(members.map((one) => one.host)).size;
      const all = members.map((one) => this.rank(one));
      return { key, label: named(numbers), note: counted(hosts, "host") + (rack ? " in " + rack : ""), host: members[0].host, rack, numbers,
        late: numbers.some((rank) => this.late.has(rank)), folds: true, children: opened.has(key) ? this.some(key, all) : undefined };
    });
  }

  /** Shows the first children, and always those with a late rank. */
  some(key, children) {
    const most = opened.get(key) || CHILDREN_FIRST;
    if (children.length <= most) return children;
    const shown = children.filter((child, i) => i < most || child.late);
    const left = children.length - shown.length;
    if (!left) return shown;
    return [...shown, { key: key + " more", opens: key, label: whole(left) + " more", note: "", numbers: [] }];
  }

  aggregator(node, depth = 0) {
    const key = "aggregator " + node.aggregator;
    const known = state.aggregators.get(node.aggregator);
    const numbers = ranksBelow(node);
    const late = numbers.some((rank) => this.late.has(rank));
    const folds = depth >= this.depth && !late;
    const children = folds && !opened.has(key) ? null : this.some(key, [
      ...node.children.filter((child) => child.children).map((child) => this.aggregator(child, depth + 1)),
      ...this.ranks(node.children.filter((child) => !child.children), key)]);
    const rack = this.fabric.host(node.host).rack;
    return { key, label: node.aggregator, note: node.host + (rack ? " in " + rack : ""), host: node.host, aggregator: true, numbers, state: known ? known.state : "expired",
      late, folds, below: numbers.length, children };
  }
}

function edge(link, flow, view) {
  const [from, to] = [link.source, link.target];
  const used = view.loads && to.data.host && from.data.host ? loadBetween(view.loads, view.fabric, to.data.host, from.data.host) : 0;
  const width = flow > 0 ? 1.5 + Math.min(3.5, Math.log10(1 + flow / 1e6)) : 1.2;
  const middle = (from.y + to.y) / 2;
  const path = draw("path", { class: "edge " + (flow > 0 ? loadClass(used) : ""), "stroke-width": width.toFixed(1),
    d: `M${from.y},${from.x}C${middle},${from.x} ${middle},${to.x} ${to.y},${to.x}` });
  path.append(draw("title", {}, rate(flow) + (used > 0 ? ", its fullest link at " + percent(used) + " by " + view.whose : "")));
  return path;
}

/** A band behind the ranks of each rack, with the rack's name. */
function racksOf(nodes, view, right) {
  const bands = [];
  for (const one of nodes) {
    if (one.children || one.data.aggregator || !one.data.host) continue;
    const rack = one.data.rack === undefined ? view.fabric.host(one.data.host).rack : one.data.rack;
    if (!rack) continue;
    const last = bands[bands.length - 1];
    if (last && last.rack === rack && one.x - last.to <= 2 * ROW) last.to = one.x;
    else bands.push({ rack, from: one.x, to: one.x, y: one.y });
    bands[bands.length - 1].y = Math.min(one.y, bands[bands.length - 1].y);
  }
  return bands.flatMap((band) => {
    const top = band.from - ROW / 2 + 1, height = band.to - band.from + ROW - 2;
    return [draw("rect", { class: "rack", x: band.y - 12, y: top, width: right - band.y + 12, height, rx: 4 }),
      draw("text", { class: "dim rack-name", x: right - 6, y: band.from + 4 }, band.rack)];
  });
}

function wordsOf(data) {
  const trouble = data.aggregator && data.state !== "active" ? ", " + data.state : "";
  return data.label + (data.note ? ", " + data.note : "") + trouble + (data.late ? ", a rank is late" : "");
}

function nodeOf(place, toggle, roomy) {
  const data = place.data;
  const opens = data.folds || data.opens;
  const broken = data.aggregator && ["expired", "suspected"].includes(data.state);
  const className = ["node", data.aggregator ? "aggregator" : "ranks", broken ? "broken" : "", !data.aggregator && data.late ? "late" : "", opens ? "opens" : ""];
  const group = draw("g", { class: className.join(" ").trim(), transform: `translate(${place.y},${place.x})`, tabindex: -1, role: "treeitem",
    "aria-label": wordsOf(data), "aria-level": place.depth + 1, "data-key": data.key });
  if (data.folds) group.setAttribute("aria-expanded", String(Boolean(data.children)));
  // The edges to the children begin at an inner node's right: its words stand above them.
  const above = place.parent ? { x: 6, y: -11, "text-anchor": "end" } : { x: -6, y: -11 };
  const text = draw("text", place.children ? above : { x: 10, y: 4 });
  const sign = data.folds ? (data.children ? " −" : data.below ? " + " + counted(data.below, "rank") : " +") : "";
  text.append(draw("tspan", {}, data.label + sign));
  if (data.note && (roomy || !place.children)) text.append(draw("tspan", { class: "dim", dx: 6 }, data.note));
  if (data.aggregator && data.state !== "active") text.append(draw("tspan", { dx: 6, "font-weight": 600 }, data.state));
  group.append(draw("circle", { r: data.aggregator ? 6 : 4.5 }), text);
  if (opens) group.addEventListener("click", () => toggle(data));
  return group;
}

/** Moves the focus: Up and Down to the neighbour on the page, Left to the parent, Right to the first child. Enter opens and closes. */
function walkByKeys(svg, nodes, toggle) {
  svg.addEventListener("keydown", (event) => {
    const now = nodes.findIndex((one) => one.element === document.activeElement);
    if (now < 0) return;
    const place = nodes[now].place;
    const go = (target) => {
      const next = nodes.find((one) => one.place === target);
      if (next) next.element.focus();
    };
    const opens = place.data.folds || place.data.opens;
    const keys = { ArrowDown: () => nodes[now + 1] && nodes[now + 1].element.focus(), ArrowUp: () => nodes[now - 1] && nodes[now - 1].element.focus(),
      ArrowLeft: () => place.parent && go(place.parent), ArrowRight: () => place.children && go(place.children[0]),
      Enter: () => opens && toggle(place.data), " ": () => opens && toggle(place.data) };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}

function toggle(data) {
  const key = data.opens || data.key;
  if (data.opens) opened.set(key, (opened.get(key) || CHILDREN_FIRST) * 4);
  else if (opened.has(key)) opened.delete(key);
  else opened.set(key, CHILDREN_FIRST);
}

/** `view`: {trees, lane, flows, late, fabric, loads, whose, room}; `again` draws anew. */
export function showTree(view, again) {
  const place = find("tree");
  if (!view) return place.replaceChildren();
  const tree = view.trees[view.lane];
  const root = d3.hierarchy(new Folding(view.fabric, view.late, tree.root).aggregator(tree.root));
  const label = root.leaves().some((one) => one.data.aggregator) ? LABEL_OF_FOLDED : LABEL;
  const step = Math.max(STEP_LEAST, Math.min(STEP_MOST, (view.room - label - 24) / Math.max(1, root.height)));
  d3.cluster().nodeSize([ROW, step]).separation((a, b) => (a.parent === b.parent ? 1 : 1.5))(root);
  const all = [];
  root.eachBefore((one) => all.push(one));
  const low = Math.min(...all.map((one) => one.x)), high = Math.max(...all.map((one) => one.x));
  const width = step * root.height + label + 24, height = high - low + 2 * ROW;
  const svg = draw("svg", { width, height, viewBox: `-14 ${low - ROW} ${width} ${height}`, role: "tree", "aria-label": "Tree of lane " + tree.lane });
  svg.append(...racksOf(all, view, width - 18));
  for (const link of root.links()) svg.append(edge(link, view.flows[view.lane], view));
  const change = (data) => {
    toggle(data);
    again();
  };
  const nodes = all.map((one) => ({ place: one, element: nodeOf(one, change, step > STEP_ROOMY) }));
  svg.append(...nodes.map((one) => one.element));
  const before = document.activeElement && place.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const first = nodes.find((one) => one.place.data.key === before) || nodes[0];
  first.element.setAttribute("tabindex", 0);
  walkByKeys(svg, nodes, change);
  place.replaceChildren(svg);
  if (before) first.element.focus({ preventScroll: true });
}
