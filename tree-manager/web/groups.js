// Groups by tenant and job: all that runs.
import { find, head, keepFocus, make, moveByArrows, wideRow } from "/web/dom.js";
import { groupMatches } from "/web/search.js";
import { inTrees, state, total } from "/web/state.js";
import { counted, duration, rate, tenantName, whole } from "/web/words.js";

const ROWS_FIRST = 60;
const COLUMNS = [["job"], ["ranks", "number"], ["path"], ["rate", "number"], ["late", "number"], ["age", "number roomy"],
  ["reason", "roomy"]];
let rows = ROWS_FIRST;

const number = (text, more = "") => make("td", text, "number " + more);

function rowOf(group) {
  const row = make("tr", undefined, group.group === state.chosen ? "chosen" : "");
  const job = make("td"), link = make("a", group.job);
  link.href = "#group=" + group.group;
  link.dataset.key = "group " + group.group;
  link.title = "group " + group.group;
  if (group.group === state.chosen) link.setAttribute("aria-current", "true");
  job.append(link);
  const word = inTrees(group) ? "in-network" : "fallback";
  const path = make("td", word, word);
  path.title = group.reason;
  row.append(job, number(whole(group.ranks)), path,
    number(rate(total(group.rates))), number(group.late.length || "", group.late.length ? "bad" : ""),
    number(duration(group.age_seconds), "roomy"), make("td", group.reason, "wide roomy"));
  return row;
}

function tenantRow(tenant, groups) {
  const row = make("tr"), cell = make("th");
  cell.colSpan = COLUMNS.length;
  cell.scope = "rowgroup";
  const ranks = groups.reduce((all, group) => all + group.ranks, 0);
  const flow = groups.reduce((all, group) => all + total(group.rates), 0);
  cell.append(tenantName(tenant), make("span", "  " + counted(groups.length, "group") + ", " + counted(ranks, "rank") + ", " + rate(flow), "dim"));
  row.append(cell);
  return row;
}

function byTenant(groups) {
  const tenants = new Map();
  for (const group of groups) {
    if (!tenants.has(group.tenant)) tenants.set(group.tenant, []);
    tenants.get(group.tenant).push(group);
  }
  return [...tenants].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Groups with late ranks come first, then those on the fallback, then by job. */
function order(a, b) {
  return b.late.length - a.late.length || inTrees(a) - inTrees(b) || (a.job < b.job ? -1 : a.job > b.job ? 1 : a.group - b.group);
}

function more(left) {
  const button = make("button", "Show " + whole(Math.min(left, 500)) + " more of " + whole(left));
  button.dataset.key = "more groups";
  button.onclick = () => {
    rows += 500;
    showGroups();
  };
  return wideRow(COLUMNS.length, button, "more");
}

export function showGroups() {
  const found = state.overview.groups.filter(groupMatches);
  const all = state.overview.groups.length;
  find("groups-count").textContent = found.length === all ? whole(all) : whole(found.length) + " of " + whole(all);
  keepFocus(find("groups"), () => {
    const body = head(find("groups"), COLUMNS);
    if (!found.length) body.append(wideRow(COLUMNS.length, make("span", all ? "No group matches." : "No job has asked for a group.", "dim")));
    let left = rows;
    for (const [tenant, groups] of byTenant(found)) {
      if (left <= 0) break;
      body.append(tenantRow(tenant, groups), ...groups.sort(order).slice(0, left).map(rowOf));
      left -= groups.length;
    }
    if (found.length > rows) body.append(more(found.length - rows));
  });
}

export function startGroups() {
  moveByArrows(find("groups"), "a, button");
}
