"use strict";
// The page reads whole without this: it adds a filter and buttons that copy, opens what a link points into, and opens evidence for print.
const findings = Array.from(document.querySelectorAll(".finding"), (node) => ({ node, text: null }));
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

if (form && findings.length > 1) {
  form.hidden = false;
  let waiting = 0;
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
}
addEventListener("hashchange", openTarget);
addEventListener("beforeprint", () => {
  const closed = document.querySelectorAll("details:not([open])");
  for (const details of Array.from(closed).slice(0, 500)) {
    details.open = true;
    details.dataset.forPrint = "yes";
  }
});
addEventListener("afterprint", () => {
  for (const details of document.querySelectorAll("[data-for-print]")) {
    details.open = false;
    delete details.dataset.forPrint;
  }
});
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
openTarget();
