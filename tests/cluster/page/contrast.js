// Returns the visible texts whose contrast to their ground is below `least`, by the formula of WCAG 2.1.
const least = arguments[0];

function parts(colour) {
  const found = /rgba?\(([^)]+)\)/.exec(colour);
  const numbers = found ? found[1].split(/[ ,/]+/).map(Number) : [0, 0, 0, 0];
  return numbers.length < 4 ? [...numbers, 1] : numbers;
}

function luminance([red, green, blue]) {
  const linear = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function ground(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = parts(getComputedStyle(at).backgroundColor);
    if (colour[3] === 1) return colour;
  }
  return parts(getComputedStyle(document.documentElement).backgroundColor);
}

const bad = [];
let seen = 0;
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  const text = texts.currentNode.textContent.trim();
  if (!text || ["SCRIPT", "STYLE", "TITLE", "title"].includes(element.tagName) || !element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  const ink = luminance(parts(element.closest("svg") ? style.fill : style.color)), paper = luminance(ground(element));
  const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  ++seen;
  if (contrast < least) bad.push(text.slice(0, 40) + " " + element.tagName + "." + (element.getAttribute("class") || "") + " " + contrast.toFixed(2));
}
return [seen, bad];
