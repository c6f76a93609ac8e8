// Events as they come, the newest first.
import { find, make } from "/web/dom.js";
import { matches } from "/web/search.js";
import { clock, tenantName } from "/web/words.js";

const KEPT_MAX = 300;
const NEW_MS = 3000;
const BAD = new Set(["tree-lost", "denied", "straggler", "aggregator-suspected", "aggregator-expired"]);
const GOOD = new Set(["group-adopted", "tree-back", "tree-moved", "straggler-over", "aggregator-back", "undrained"]);
const kept = [];

function itemOf(event) {
  const item = make("li"), when = make("time", clock(event.time_ms));
  when.dateTime = new Date(event.time_ms).toISOString();
  const kind = BAD.has(event.kind) ? "bad" : GOOD.has(event.kind) ? "good" : event.kind === "drained" ? "warn" : "";
  item.append(when, make("span", event.kind.replaceAll("-", " "), "kind " + kind));
  if (event.group) {
    const link = make("a", event.job);
    link.href = "#group=" + event.group;
    link.title = "group " + event.group + " of " + tenantName(event.tenant);
    item.append(link, " ");
  }
  if (event.aggregator && !event.text.includes(event.aggregator)) item.append(make("b", event.aggregator), " ");
  item.append(event.text);
  // The reason in the text mostly ends with its code.
  if (event.code && event.kind === "denied" && !event.text.includes("[" + event.code + "]")) item.append(" ", make("span", "(" + event.code + ")", "dim"));
  item.dataset.kind = event.kind;
  return item;
}

const shown = (event) => matches(event.kind, event.text, event.job || "", event.tenant || "", event.aggregator || "", event.group || "");

export function showEvents() {
  const list = find("events");
  const items = kept.filter(shown).map(itemOf);
  list.replaceChildren(...(items.length ? items : [make("li", kept.length ? "No event matches." : "Nothing has happened yet.", "dim")]));
}

export function takeHistory(events) {
  kept.splice(0, kept.length, ...events.slice(-KEPT_MAX).reverse());
  showEvents();
}

export function takeEvent(event) {
  if (kept.some((one) => one.id === event.id)) return;
  kept.unshift(event);
  kept.length = Math.min(kept.length, KEPT_MAX);
  showEvents();
  const first = find("events").firstElementChild;
  if (!shown(event)) return;
  first.classList.add("new");
  setTimeout(() => first.classList.remove("new"), NEW_MS);
}
