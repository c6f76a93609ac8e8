// Lag as a heat map over ranks: one cell for each rank, on a canvas.
import { find, make } from "/web/dom.js";
import { state, wasLate } from "/web/state.js";
import { colour } from "/web/theme.js";
import { causeWords, counted, whole } from "/web/words.js";

const RAMP = [[255, 214, 102], [240, 130, 40], [200, 30, 30], [120, 0, 60]];  // 1 ms, 21 ms, 464 ms, 10 s
const DECADES = 4;
let cursor = 0, view = null;

export function heat(milliseconds) {
  const part = Math.min(1, Math.max(0, Math.log10(Math.max(1, milliseconds)) / DECADES)) * (RAMP.length - 1);
  const from = RAMP[Math.floor(part)], to = RAMP[Math.ceil(part)], share = part - Math.floor(part);
  return "rgb(" + from.map((value, i) => Math.round(value + share * (to[i] - value))).join(",") + ")";
}

function geometry(count, width) {
  const size = count <= 64 ? 22 : count <= 512 ? 14 : count <= 2048 ? 9 : 6;
  const columns = Math.max(1, Math.floor(width / size));
  return { size, columns, rows: Math.ceil(count / columns) };
}

function words(rank) {
  const late = view.late.get(rank);
  const before = wasLate(view.group, rank);
  const where = "rank " + rank + (view.hosts[rank] ? " on " + view.hosts[rank] : "");
  if (late) return where + ": late by " + whole(late.lag_milliseconds) + " ms, " + counted(late.operations_behind, "operation") + " behind" + causeWords(late);
  return before ? where + ": on time; was late by " + whole(before.lag) + " ms" : where + ": on time";
}

function paint(canvas, shape) {
  const scale = devicePixelRatio || 1;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const idle = colour("--idle"), accent = colour("--accent"), mark = colour("--between"), found = colour("--good");
  const gap = shape.size > 8 ? 2 : 1;
  for (let rank = 0; rank < view.count; ++rank) {
    const x = (rank % shape.columns) * shape.size, y = Math.floor(rank / shape.columns) * shape.size;
    const late = view.late.get(rank);
    pen.fillStyle = late ? heat(late.lag_milliseconds) : idle;
    pen.fillRect(x, y, shape.size - gap, shape.size - gap);
    if (!late && wasLate(view.group, rank)) {
      pen.fillStyle = mark;
      pen.fillRect(x, y, (shape.size - gap) / 2, (shape.size - gap) / 2);
    }
    if (state.search && view.hosts[rank] && view.hosts[rank].toLowerCase().includes(state.search)) {
      pen.strokeStyle = found;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, shape.size - gap - 2, shape.size - gap - 2);
    }
  }
  if (document.activeElement !== canvas) return;
  pen.strokeStyle = accent;
  pen.lineWidth = 2;
  pen.strokeRect((cursor % shape.columns) * shape.size, Math.floor(cursor / shape.columns) * shape.size, shape.size - gap, shape.size - gap);
}

function scaleOfColours() {
  const list = make("ul", undefined, "legend");
  for (const [text, lag] of [["on time", 0], ["1 ms", 1], ["20 ms", 20], ["500 ms", 500], ["10 s", 10000]]) {
    const item = make("li"), box = make("canvas");
    box.width = box.height = 12;
    box.setAttribute("aria-hidden", "true");
    box.className = "swatch";
    const pen = box.getContext("2d");
    pen.fillStyle = lag ? heat(lag) : colour("--idle");
    pen.fillRect(0, 0, 12, 12);
    item.append(box, " " + text);
    list.append(item);
  }
  return list;
}

function listen(canvas, shape, caption) {
  const point = (rank) => {
    cursor = Math.max(0, Math.min(view.count - 1, rank));
    caption.textContent = words(cursor);
    paint(canvas, shape);
  };
  canvas.onmousemove = (event) => {
    const rank = Math.floor(event.offsetY / shape.size) * shape.columns + Math.floor(event.offsetX / shape.size);
    if (rank < view.count) point(rank);
  };
  canvas.onkeydown = (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: shape.columns, ArrowUp: -shape.columns };
    if (!steps[event.key]) return;
    event.preventDefault();
    point(cursor + steps[event.key]);
  };
  canvas.onfocus = () => point(view.late.size && !view.late.has(cursor) ? view.late.keys().next().value : cursor);
  canvas.onblur = () => paint(canvas, shape);
}

/** `shown`: {group, count, hosts, late}: late ranks by number; null: no group is chosen. `room`: the width. */
export function showLag(shown, room) {
  const place = find("lag");
  find("h-lag").textContent = shown ? "Lag of " + counted(shown.count, "rank") + (shown.late.size ? ", " + shown.late.size + " late" : "") : "Lag of the ranks";
  if (!shown) return place.replaceChildren();
  if (view && view.group !== shown.group) cursor = 0;
  view = shown;
  const focused = place.contains(document.activeElement);
  const width = Math.max(200, room), shape = geometry(view.count, width);
  const canvas = make("canvas"), caption = make("p", undefined, "caption");
  canvas.width = width * (devicePixelRatio || 1);
  canvas.height = shape.rows * shape.size * (devicePixelRatio || 1);
  canvas.style.height = shape.rows * shape.size + "px";
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  const worst = [...view.late.keys()].slice(0, 4).map(words);
  canvas.setAttribute("aria-label", counted(view.count, "rank") + ". " + (worst.length ? worst.join(". ") : "No rank is late.") + " The arrow keys go from rank to rank.");
  caption.setAttribute("aria-live", "polite");
  caption.textContent = worst.length ? worst[0] : "no rank is late";
  place.replaceChildren(canvas, caption, scaleOfColours());
  listen(canvas, shape, caption);
  paint(canvas, shape);
  if (focused) canvas.focus({ preventScroll: true });
}
