// Shared by the scripts of the report and the viewer.
"use strict";
document.documentElement.classList.add("scripted");

const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes, ...children) {
  const isSvg = ["g", "line", "text", "path", "circle", "rect", "svg", "image", "title"].includes(name);
  const node = isSvg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function setUpTheme(button) {
  const root = document.documentElement, media = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : media.matches);
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.setAttribute("aria-label", "Switch between light and dark");
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  media.addEventListener("change", name);
  name();
}

document.querySelectorAll("[data-theme-toggle]").forEach(setUpTheme);
