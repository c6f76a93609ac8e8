// Puts the page together: one overview at the start, events as they come, and what they have changed.
import { NoToken, get, useToken } from "/web/api.js";
import { showAggregators, startAggregators } from "/web/aggregators.js";
import { fetchChosen, fetchFabric, measure, showChosen, startChosen } from "/web/chosen.js";
import { find } from "/web/dom.js";
import { showEvents, takeEvent, takeHistory } from "/web/event_list.js";
import { listen } from "/web/events.js";
import { showGroups, startGroups } from "/web/groups.js";
import { fetchTrees } from "/web/links.js";
import { startSearch } from "/web/search.js";
import { inTrees, state, takeOverview } from "/web/state.js";
import { showSummary } from "/web/summary.js";
import { startTheme } from "/web/theme.js";
import { showTraffic } from "/web/traffic.js";

const APART_MS = 1000;         // two fetches are at least as far apart
const COUNTS_MS = 4000;        // counts of bytes come with leases, and are no events; the connection stays open for 5 s
const AGGREGATORS_MS = 30000;  // loads of aggregators

const due = { groups: false, aggregators: false };
let fetchedAt = 0, aggregatorsAt = 0, timer = 0, fetching = false;

function showAll() {
  const room = measure();
  showSummary();
  showGroups();
  showAggregators();
  showTraffic(room.traffic);
  showEvents();
  showChosen(room);
}

function showOverview(aggregatorsToo) {
  const room = measure();
  showSummary();
  showGroups();
  if (aggregatorsToo) showAggregators();
  showTraffic(room.traffic);
  showChosen(room);
}

/** Calls back when the browser has drawn the page as it is now. */
function afterDrawing(call) {
  requestAnimationFrame(() => setTimeout(call, 0));
}

let stream = "connecting";

/** `how`: true, or the reason why the page is not live. */
function say(how) {
  const live = how === true;
  find("live").textContent = live ? "live" : "not live: " + (how.message || how);
  find("live").className = live ? "good" : "bad";
  if (how instanceof NoToken) find("sign-in").hidden = false;
}

function chooseFromAddress() {
  const wanted = /^#group=(\d+)$/.exec(location.hash);
  if (wanted) state.chosen = Number(wanted[1]);
  else if (!state.groups.has(state.chosen)) {
    const groups = state.overview.groups;
    const first = groups.find((group) => group.late.length) || groups.find(inTrees) || groups[0];
    state.chosen = first ? first.group : null;
  }
}

async function fetchNow() {
  if (fetching) return;
  fetching = true;
  const aggregatorsToo = due.aggregators || Date.now() - aggregatorsAt > AGGREGATORS_MS;
  due.groups = due.aggregators = false;
  try {
    const overview = await get("/v1/overview" + (aggregatorsToo ? "" : "?only=groups"));
    if (aggregatorsToo) aggregatorsAt = Date.now();
    takeOverview(overview, Date.now());
    chooseFromAddress();
    const trees = fetchTrees().then(() => null, (error) => error);  // the page shows the rest without them
    await Promise.all([fetchChosen(), fetchFabric()]);
    const lacking = await trees;
    showOverview(aggregatorsToo);
    say(lacking || stream);
  } catch (error) {
    say(error);
  }
  fetching = false;
  fetchedAt = Date.now();
  plan();
}

/** Fetches soon after an event, and now and then for the counts; never while nobody looks. */
function plan() {
  clearTimeout(timer);
  if (document.hidden) return;
  const wait = due.groups || due.aggregators ? APART_MS : COUNTS_MS;
  timer = setTimeout(fetchNow, Math.max(0, fetchedAt + wait - Date.now()));
}

function hear(kind, data) {
  if (kind === "missed") {
    due.groups = due.aggregators = true;
    get("/v1/events").then((history) => takeHistory(history.events), say);
  } else {
    takeEvent(JSON.parse(data));
    due.groups = true;
    if (kind.startsWith("aggregator") || kind.endsWith("drained")) due.aggregators = true;
  }
  plan();
}

async function choose() {
  chooseFromAddress();
  showGroups();
  await fetchChosen();
  showChosen();
  showTraffic();
}

/** The page is ready when all that it shows of the cluster is drawn; tests read the mark. */
async function begin() {
  try {
    const [overview, history, version] = await Promise.all([get("/v1/overview"), get("/v1/events"), get("/v1/version")]);
    find("sign-in").hidden = true;
    find("version").textContent = version.version;
    aggregatorsAt = fetchedAt = Date.now();
    takeOverview(overview, Date.now());
    chooseFromAddress();
    await Promise.all([fetchChosen(), fetchFabric()]);
    takeHistory(history.events);
    showAll();
    afterDrawing(() => {
      performance.mark("tributary-ready");
      // The trees of all groups change only the loads of links: the page does not wait for them.
      fetchTrees().then(() => showChosen(), say);
    });
    listen(String(overview.last_event), hear, (how) => {
      stream = how;
      say(how);
    });
    plan();
  } catch (error) {
    say(error);
    if (!(error instanceof NoToken)) setTimeout(begin, 2000);
  }
}

find("sign-in").onsubmit = (event) => {
  event.preventDefault();
  useToken(find("token").value.trim());
  begin();
};
addEventListener("hashchange", choose);
let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    const room = measure();
    showTraffic(room.traffic);
    showChosen(room);
  }, 100);
});
document.addEventListener("visibilitychange", plan);
startTheme(showAll);
startSearch(showAll);
startGroups();
startAggregators();
startChosen();
begin();
