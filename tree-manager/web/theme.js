// Light or dark: as the system says, until the person chooses.
import { find } from "/web/dom.js";

const KEY = "tributary-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function kept() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;  // the browser keeps nothing
  }
}

const shown = () => document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function startTheme(changed) {
  const button = find("theme");
  const name = () => (button.textContent = shown() === "dark" ? "Light" : "Dark");
  if (kept()) document.documentElement.dataset.theme = kept();
  name();
  button.onclick = () => {
    document.documentElement.dataset.theme = shown() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, shown());
    } catch { /* the choice lasts as long as the page */ }
    name();
    changed();
  };
  dark.addEventListener("change", () => {
    name();
    changed();
  });
}
