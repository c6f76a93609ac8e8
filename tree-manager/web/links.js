// The loads of links: by the trees of all groups, or of the chosen group alone.
import { get } from "/web/api.js";
import { draw, find, make, moveByArrows } from "/web/dom.js";
import { linkLoads, loadClass } from "/web/fabric.js";
import { inTrees, state } from "/web/state.js";
import { counted, percent, rate } from "/web/words.js";

const LINKS_SHOWN = 10;
const APART_MS = 10000;  // the trees of all groups are a long answer: two fetches are at least as far apart
const WHOSE = { all: "all groups", one: "this group" };
let whose = "all", trees = [], treesOf = "", fetchedAt = 0;

export const whoseWords = () => WHOSE[whose];

/** Asks for the trees of all groups, if some of them have changed. */
export async function fetchTrees() {
  const now = state.overview.groups.filter(inTrees).map((group) => group.group + ":" + group.epoch).join(" ");
  if (now === treesOf || Date.now() - fetchedAt < APART_MS) return;
  fetchedAt = Date.now();
  trees = now ? (await get("/v1/trees")).trees : [];
  treesOf = now;
}

/** A lane carries the part of its group's bytes that its weight says. */
export function flowsOf(lanes) {
  const weights = new Map();
  for (const lane of lanes) weights.set(lane.group, (weights.get(lane.group) || 0) + lane.weight);
  return lanes.map((lane) => {
    const group = state.groups.get(lane.group);
    return group ? (group.rates[0] * lane.weight) / weights.get(lane.group) : 0;
  });
}

/** The loads of all links that the trees use. `chosen`: the lanes of the chosen group, which may be newer than those in `trees`. */
export function loadsNow(chosen, fabric) {
  const others = whose === "all" ? trees.filter((lane) => !chosen.some((one) => one.group === lane.group)) : [];
  const lanes = [...chosen, ...others];
  return linkLoads(lanes, flowsOf(lanes), fabric);
}

function rowOf(load) {
  const row = make("tr"), cell = make("td"), svg = draw("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(draw("rect", { width: 100, height: 10, class: "bar-ground" }),
    draw("rect", { width: Math.min(100, 100 * load.used).toFixed(1), height: 10, class: "bar " + loadClass(load.used) }));
  cell.append(svg);
  row.append(make("td", load.name), cell, make("td", load.rate ? percent(load.used) : "?", "number"), make("td", rate(load.bytes), "number"));
  if (whose === "all") row.append(make("td", counted(load.groups.size, "group"), "number optional"));
  return row;
}

export function showLinks(loads) {
  const used = [...loads.values()].filter((load) => load.bytes > 0).sort((a, b) => b.used - a.used || b.bytes - a.bytes).slice(0, LINKS_SHOWN);
  if (!used.length) return find("links").replaceChildren(make("p", "Nothing flows by the trees of " + whoseWords() + ".", "dim"));
  const table = make("table", undefined, "bars");
  table.append(...used.map(rowOf));
  find("links").replaceChildren(table);
}

/** `again` draws anew what depends on the loads. */
export function startLinks(again) {
  const buttons = [...find("whose").children];
  const mark = () => {
    for (const button of buttons) {
      const chosen = button.dataset.whose === whose;
      button.setAttribute("aria-checked", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
  };
  for (const button of buttons) {
    button.onclick = () => {
      whose = button.dataset.whose;
      mark();
      again();
    };
  }
  mark();
  moveByArrows(find("whose"), "button", "ArrowLeft", "ArrowRight");
}
