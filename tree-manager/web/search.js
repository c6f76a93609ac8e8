// Finds groups and aggregators by job, tenant, host, user, number and name.
import { get } from "/web/api.js";
import { state } from "/web/state.js";
import { tenantName } from "/web/words.js";
import { find } from "/web/dom.js";

const WAIT_MS = 250;

export function matches(...texts) {
  return !state.search || texts.some((text) => String(text).toLowerCase().includes(state.search));
}

export function groupMatches(group) {
  return matches(group.job, tenantName(group.tenant), group.user, group.group) || (state.onHost && state.onHost.has(group.group));
}

export function aggregatorMatches(aggregator) {
  return matches(aggregator.name, aggregator.host, aggregator.state);
}

/** The manager knows the hosts of all ranks; the overview does not have them. */
async function askForHost(text) {
  const found = await get("/v1/overview?only=groups&host=" + encodeURIComponent(text));
  if (text === state.search) state.onHost = new Set(found.groups.map((group) => group.group));
}

export function startSearch(changed) {
  const field = find("search");
  let timer = 0;
  field.addEventListener("input", () => {
    state.search = field.value.trim().toLowerCase();
    state.onHost = null;
    changed();
    clearTimeout(timer);
    if (!state.search) return;
    timer = setTimeout(() => askForHost(state.search).then(changed, () => {}), WAIT_MS);
  });
  document.addEventListener("keydown", (event) => {
    const writing = event.target.matches("input, textarea");
    if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
      field.select();
    }
    if (event.key === "Escape" && event.target === field) {
      field.value = "";
      field.dispatchEvent(new Event("input"));
      field.blur();
    }
  });
}
