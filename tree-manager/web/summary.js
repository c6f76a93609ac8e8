// The whole cluster in a few numbers.
import { find, make } from "/web/dom.js";
import { inTrees, state, total } from "/web/state.js";
import { rate, whole } from "/web/words.js";

function part(name, text, className) {
  const box = make("div");
  box.append(make("b", text, className), make("span", name, "dim"));
  return box;
}

export function showSummary() {
  const { groups, aggregators, fabric } = state.overview;
  const active = aggregators.filter((one) => one.state === "active").length;
  const trouble = aggregators.length - active;
  const fallback = groups.filter((group) => !inTrees(group)).length;
  const late = groups.reduce((all, group) => all + group.late.length, 0);
  find("summary").replaceChildren(
    part("tenants", whole(new Set(groups.map((group) => group.tenant)).size)),
    part("groups in-network", whole(groups.length - fallback)),
    part("groups on the fallback", whole(fallback), fallback ? "warn" : ""),
    part("ranks", whole(groups.reduce((all, group) => all + group.ranks, 0))),
    part("ranks late", whole(late), late ? "bad" : ""),
    part("aggregators active", whole(active)),
    part("aggregators not active", whole(trouble), trouble ? "bad" : ""),
    part("all paths", rate(groups.reduce((all, group) => all + total(group.rates), 0))),
    part(fabric ? fabric.kind + " fabric" : "fabric", fabric ? whole(fabric.hosts) + " hosts" : ""));
}
