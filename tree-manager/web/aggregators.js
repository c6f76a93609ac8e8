// Aggregators: state, place, memory. Those in trouble come first.
import { find, head, keepFocus, make, moveByArrows, wideRow } from "/web/dom.js";
import { aggregatorMatches } from "/web/search.js";
import { state } from "/web/state.js";
import { bytes, percent, whole } from "/web/words.js";

const ROWS_FIRST = 60;
const COLUMNS = [["name"], ["state"], ["host", "optional"], ["memory reserved"], ["lanes", "number optional"], ["summed", "number roomy"]];
const TROUBLE = ["suspected", "expired", "draining", "resuming", "active"];
let rows = ROWS_FIRST;

function rowOf(one) {
  const row = make("tr");
  row.tabIndex = -1;
  row.dataset.key = "aggregator " + one.name;
  const memory = make("td"), bar = make("meter");
  bar.max = Math.max(1, one.memory_bytes);
  bar.value = one.memory_reserved_bytes;
  bar.setAttribute("aria-label", "memory reserved");
  memory.append(bar, " " + percent(one.memory_reserved_bytes / Math.max(1, one.memory_bytes)));
  memory.title = bytes(one.memory_reserved_bytes) + " of " + bytes(one.memory_bytes);
  row.append(make("td", one.name), make("td", one.state, one.state), make("td", one.host, "optional"), memory,
    make("td", whole(one.lanes_active), "number optional"), make("td", bytes(one.contribution_bytes_total), "number roomy"));
  return row;
}

function more(left) {
  const button = make("button", "Show " + whole(Math.min(left, 500)) + " more of " + whole(left));
  button.dataset.key = "more aggregators";
  button.onclick = () => {
    rows += 500;
    showAggregators();
  };
  return wideRow(COLUMNS.length, button, "more");
}

export function showAggregators() {
  const all = state.overview.aggregators;
  const found = all.filter(aggregatorMatches);
  found.sort((a, b) => TROUBLE.indexOf(a.state) - TROUBLE.indexOf(b.state) || (a.name < b.name ? -1 : 1));
  find("aggregators-count").textContent = found.length === all.length ? whole(all.length) : whole(found.length) + " of " + whole(all.length);
  keepFocus(find("aggregators"), () => {
    const body = head(find("aggregators"), COLUMNS);
    if (!found.length) body.append(wideRow(COLUMNS.length, make("span", all.length ? "No aggregator matches." : "No aggregator has registered yet.", "dim")));
    body.append(...found.slice(0, rows).map(rowOf));
    if (body.querySelector("tr[data-key]")) body.querySelector("tr[data-key]").tabIndex = 0;
    if (found.length > rows) body.append(more(found.length - rows));
  });
}

export function startAggregators() {
  moveByArrows(find("aggregators"), "tr[data-key], button");
}
