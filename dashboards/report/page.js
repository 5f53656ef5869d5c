"use strict";
// The page reads whole without this: it adds a search, sorting and buttons that copy, and opens what a link points into.
const findings = Array.from(document.querySelectorAll(".finding"), (node) => ({ node, text: null }));
const rows = Array.from(document.querySelectorAll("main section tbody tr"), (node) => ({ node, text: null }));
const form = document.getElementById("filter");

function apply() {
  const words = document.getElementById("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  const kinds = new Set(Array.from(form.querySelectorAll("[name=kind]:checked"), (box) => box.value));
  let shown = 0;
  for (const finding of findings) {
    if (words.length && finding.text === null) {
      const topic = finding.node.parentNode.querySelector("h3").textContent;
      finding.text = (topic + " " + finding.node.textContent).toLowerCase();
    }
    const fits = kinds.has(finding.node.dataset.kind) && words.every((word) => finding.text.includes(word));
    finding.node.hidden = !fits;
    shown += fits;
  }
  for (const row of rows) {
    if (words.length && row.text === null) row.text = row.node.textContent.toLowerCase();
    row.node.hidden = words.length > 0 && !words.every((word) => row.text.includes(word));
  }
  for (const group of document.querySelectorAll(".group")) {
    group.hidden = !group.querySelector(".finding:not([hidden])");
  }
  document.getElementById("shown").textContent =
    shown === findings.length ? "" : shown.toLocaleString("en") + " of " + findings.length.toLocaleString("en") + " shown";
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let around = target; around; around = around.parentElement) {
    if (around.tagName === "DETAILS") around.open = true;
  }
  const details = target && target.querySelector(":scope > details");
  if (details) details.open = true;
}

if (form) {
  form.hidden = false;
  let waiting = 0;
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || document.activeElement?.matches("input")) return;
    event.preventDefault();
    document.getElementById("words").focus();
  });
}
addEventListener("hashchange", openTarget);
function value(row, column) {
  const text = row.cells[column].textContent.trim(), number = Number(text.replace(/[,\s]|[^\d.eE+-].*$/g, ""));
  return text !== "" && /^[\d,.]+( |$|%)/.test(text) && !Number.isNaN(number) ? number : text.toLowerCase();
}
function sort(head) {
  const table = head.closest("table"), body = table.tBodies[0], up = head.getAttribute("aria-sort") !== "ascending";
  const order = Array.from(body.rows, (row) => [value(row, head.cellIndex), row]);
  order.sort(([a], [b]) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1) * (up ? 1 : -1));
  body.append(...order.map(([, row]) => row));
  for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
}
for (const table of document.querySelectorAll("table")) {
  if (!table.tHead || table.tBodies[0].rows.length < 2 || table.querySelector("tbody td[colspan]")) continue;
  for (const head of table.tHead.querySelectorAll("th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head));
    head.append(button);
  }
}
for (const text of navigator.clipboard ? document.querySelectorAll(".copied") : []) {
  const button = document.createElement("button"), name = text.dataset.copy || "Copy";
  button.type = "button";
  button.textContent = name;
  button.addEventListener("click", () => navigator.clipboard.writeText(text.textContent).then(() => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = name; }, 2000);
  }));
  const line = document.createElement("div");
  line.className = "copy";
  text.replaceWith(line);
  line.append(text, button);
}
const updated = document.getElementById("updated"), opened_ms = performance.now();
if (updated) {
  // As duration in story/cards.py: "3 s", "2 min", "1 h". The text has the age when the page was sent.
  const [, number, unit] = updated.textContent.match(/(\d+) (s|min|h)/), age_s = number * { s: 1, min: 60, h: 3600 }[unit];
  setInterval(() => {
    const whole = Math.round(age_s + (performance.now() - opened_ms) / 1000);
    const text = whole < 120 ? whole + " s" : whole < 7200 ? Math.floor(whole / 60) + " min" : Math.floor(whole / 3600) + " h";
    updated.textContent = "updated " + text + " ago";
    updated.classList.toggle("old", whole >= 120);
  }, 1000);
}
openTarget();
