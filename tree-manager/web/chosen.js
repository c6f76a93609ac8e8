// The chosen group: facts, lanes, tree, lag and links.
import { get } from "/web/api.js";
import { find, make, moveByArrows } from "/web/dom.js";
import { readFabric } from "/web/fabric.js";
import { showLag } from "/web/heat_map.js";
import { flowsOf, loadsNow, showLinks, startLinks, whoseWords } from "/web/links.js";
import { inTrees, state, total } from "/web/state.js";
import { showTree } from "/web/tree_view.js";
import { bytes, counted, duration, lateWords, rate, tenantName } from "/web/words.js";

let lane = 0, fabric = null, fabricOf = null;

function facts(group) {
  const words = [tenantName(group.tenant), counted(group.ranks, "rank"), inTrees(group) ? counted(group.lanes, "lane") + ", " + counted(group.levels, "level") : "on the fallback",
    "epoch " + group.epoch, "since " + duration(group.age_seconds), rate(total(group.rates))];
  if (group.traffic) words.push(bytes(group.traffic.bytes_in_network) + " in-network");
  if (group.reason) words.push(group.reason);
  return words.join(" · ");
}

function showLanes(trees) {
  const place = find("lanes");
  const focused = place.contains(document.activeElement);
  place.replaceChildren(...(trees.length < 2 ? [] : trees.map((tree, i) => {
    const button = make("button", "lane " + tree.lane + (tree.rail ? ", rail " + tree.rail : ""));
    button.type = "button";
    button.setAttribute("role", "radio");
    button.setAttribute("aria-checked", String(i === lane));
    button.tabIndex = i === lane ? 0 : -1;
    button.onclick = () => {
      lane = i;
      showChosen();
    };
    return button;
  })));
  if (focused && place.children[lane]) place.children[lane].focus();
}

function fabricNow() {
  if (fabricOf !== state.topology) {
    fabric = readFabric(state.topology || { fabric: "unknown", switches: [], links: [] });
    fabricOf = state.topology;
  }
  return fabric || readFabric({ fabric: "unknown", switches: [], links: [] });
}

/** The widths of the parts that draw to measure. Reading them makes the browser lay the page out: read them first. */
export function measure() {
  return { tree: find("tree").clientWidth, lag: find("lag").clientWidth, traffic: find("traffic").clientWidth };
}

export function showChosen(room = measure()) {
  const group = state.groups.get(state.chosen);
  find("h-group").textContent = group ? "Group " + group.group + " of job " + group.job : state.chosen === null ? "No group is chosen" : "Group " + state.chosen + " has ended";
  find("group-facts").textContent = group ? facts(group) : "";
  const details = group && state.details && state.details.group === group.group ? state.details : null;
  const trees = details ? details.trees.map((tree) => ({ ...tree, group: details.group })) : [];
  lane = Math.min(lane, Math.max(0, trees.length - 1));
  showLanes(trees);
  const late = new Map(group ? group.late.map((one) => [one.rank, one]) : []);
  const loads = loadsNow(trees, fabricNow());
  showTree(trees.length ? { trees, lane, flows: flowsOf(trees), late, fabric: fabricNow(), loads, whose: whoseWords(), room: room.tree } : null, showChosen);
  showLinks(loads);
  showLag(group ? { group: group.group, count: group.ranks, hosts: details ? details.hosts : [], late } : null, room.lag);
  document.title = (group && group.late.length ? lateWords(group.late[0]) + " – " : "") + "Tributary manager";
}

/** Asks for the hosts and the trees of the chosen group, if they may have changed. */
export async function fetchChosen() {
  const group = state.groups.get(state.chosen);
  if (!group) return;
  const known = state.details;
  if (known && known.group === group.group && known.epoch === group.epoch && known.lanes === group.lanes) return;
  const details = await get("/v1/groups/" + group.group);
  if (details && details.group === state.chosen) state.details = details;
}

/** The fabric changes seldom: asks again when its size has changed. */
export async function fetchFabric() {
  const now = state.overview.fabric;
  const known = state.topology;
  if (known && known.hosts.length === now.hosts && known.switches.length === now.switches && known.links.length === now.links) return;
  state.topology = await get("/v1/topology");
}

export function startChosen() {
  moveByArrows(find("lanes"), "button", "ArrowLeft", "ArrowRight");
  startLinks(() => showChosen());
}
