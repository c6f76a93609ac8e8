// Bytes by path over time, as stacked areas.
import { draw, find, make } from "/web/dom.js";
import { state, trafficOf, total, windowMs } from "/web/state.js";
import { clock, rate } from "/web/words.js";

const HEIGHT = 190, LEFT = 78, RIGHT = 8, TOP = 8, BOTTOM = 22;
const PATHS = [["in-network", "in-network"], ["between ranks", "between"], ["shared memory", "shared"]];
let ofGroup = false;

/** Returns a round number of bytes that is not below the number: 1, 2, 5, 10, 20 ... of a unit. */
function ceiling(number) {
  if (number <= 1024) return 1024;
  const unit = 1024 ** Math.floor(Math.log(number) / Math.log(1024));
  for (const ten of [1, 10, 100, 1000]) {
    for (const step of [1, 2, 5]) if (step * ten * unit >= number) return step * ten * unit;
  }
  return 1024 * unit;
}

function picture(list, width, now) {
  const svg = draw("svg", { width, height: HEIGHT, role: "img", "aria-label": "Bytes by path over the last ten minutes" });
  const top = ceiling(Math.max(0, ...list.map((one) => total(one.rates))));
  const x = (at) => LEFT + (width - LEFT - RIGHT) * (1 - (now - at) / windowMs);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const axis = draw("g", { class: "axis" });
  for (const part of [0, 0.5, 1]) {
    axis.append(draw("line", { x1: LEFT, x2: width - RIGHT, y1: y(top * part), y2: y(top * part) }),
      draw("text", { x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end", class: "dim" }, rate(top * part)));
  }
  for (const minutes of width > 700 ? [10, 8, 6, 4, 2, 0] : [10, 5, 0]) {
    const anchor = minutes === 0 ? "end" : minutes === 10 ? "start" : "middle";
    axis.append(draw("text", { x: x(now - minutes * 60000), y: HEIGHT - 6, "text-anchor": anchor, class: "dim" },
      minutes === 0 ? clock(now).slice(0, 5) : minutes + " min ago"));
  }
  svg.append(axis);
  if (list.length < 2) {
    svg.append(draw("text", { x: (LEFT + width) / 2, y: HEIGHT / 2, "text-anchor": "middle", class: "dim" }, "the page has just begun to count"));
    return svg;
  }
  const layers = d3.stack().keys([0, 1, 2]).value((one, path) => one.rates[path])(list);
  const area = d3.area().x((_, i) => x(list[i].at)).y0((part) => y(part[0])).y1((part) => y(part[1])).curve(d3.curveMonotoneX);
  layers.forEach((layer, path) => svg.append(draw("path", { d: area(layer), class: "area-" + PATHS[path][1] })));
  return svg;
}

function legend(rates) {
  const list = make("ul", undefined, "legend");
  PATHS.forEach(([name, className], path) => {
    const item = make("li"), icon = draw("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
    icon.append(draw("rect", { width: 10, height: 10, class: "area-" + className }));
    item.append(icon, name + " ", make("b", rate(rates[path])));
    list.append(item);
  });
  return list;
}

function choice(redraw) {
  const label = make("label"), box = make("input");
  box.type = "checkbox";
  box.checked = ofGroup;
  box.disabled = !state.groups.has(state.chosen);
  box.dataset.key = "traffic of group";
  box.onchange = () => {
    ofGroup = box.checked;
    redraw();
  };
  label.append(box, " only the chosen group");
  return label;
}

export function showTraffic(room) {
  const place = find("traffic");
  const list = trafficOf(ofGroup && state.groups.has(state.chosen) ? state.chosen : "all");
  const width = Math.max(260, room || place.clientWidth);
  const last = list.length ? list[list.length - 1] : { rates: [0, 0, 0] };
  const focused = place.contains(document.activeElement);
  place.replaceChildren(picture(list, width, Date.now()), legend(last.rates), choice(() => showTraffic()));
  if (focused) place.querySelector("input").focus();
}
