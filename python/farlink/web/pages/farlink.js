// Buttons that ask before they do something; shapes of the timeline; colours of the page for charts.
"use strict";

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (!button) return;
  const dialog = document.getElementById("confirm");
  const { ask, reason, ...order } = button.dataset;
  document.getElementById("confirm-title").textContent = button.getAttribute("aria-label") || button.textContent;
  document.getElementById("confirm-text").textContent = ask;
  document.getElementById("confirm-why").value = "";
  document.getElementById("confirm-why-row").hidden = reason === undefined;
  document.getElementById("confirm-yes").textContent = button.textContent;
  dialog.returnValue = "no";
  dialog.onclose = () => {
    if (dialog.returnValue === "yes") emitEvent("farlink_order", { ...order, why: document.getElementById("confirm-why").value });
    // The button may be another one by now.
    if (!document.body.contains(button)) document.getElementById("content").focus();
  };
  dialog.showModal();
});

// A mistake's line is gone to in the editor.
document.addEventListener("click", (event) => {
  const place = event.target.closest("button[data-place]")?.dataset.place.split(":").map(Number);
  const editor = document.getElementById("toml");
  if (!place || !editor) return;
  const before = editor.value.split("\n").slice(0, place[0] - 1);
  const at = before.reduce((sum, line) => sum + line.length + 1, 0) + place[1] - 1;
  editor.focus();
  editor.setSelectionRange(at, at);
  editor.scrollTop = (before.length - 3) * parseFloat(getComputedStyle(editor).lineHeight);
});

window.farlinkColour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

// How high a state stands, as a share of a line's row: its colour alone would not tell it.
const heights = { connected: 0.8, connecting: 0.56, dropped: 0.42, failed: 0.32, blocked: 0.24, held: 0.17, waiting: 0.11, ended: 0.06 };

window.farlinkSpan = (state, params, api) => {
  const [x, y] = api.coord([api.value(0), api.value(2)]);
  const end = api.coord([api.value(1), api.value(2)])[0];
  const row = api.size([0, 1])[1];
  const height = Math.max(2, row * heights[state]);
  const area = params.coordSys;
  const left = Math.max(x, area.x);
  const right = Math.min(Math.max(end, x + 1), area.x + area.width);
  if (right < left) return null;
  const shape = { x: left, y: y + row * 0.4 - height, width: Math.max(1, right - left), height };
  return { type: "rect", shape, style: { fill: api.visual("color") } };
};

window.farlinkTip = (params) => params.data.words.map((line) => line.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c])).join("<br>");
