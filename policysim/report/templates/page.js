"use strict";
(() => {
  // The answers are written beforehand: each position of a slider shows one of them.
  const moving = JSON.parse(document.getElementById("moving").textContent);
  const at = (id) => document.getElementById(id);
  const slider = at("epsilon");
  const markers = [...document.querySelectorAll("[data-marker]")];

  function show() {
    const position = Number(slider.value);
    slider.setAttribute("aria-valuetext", `ε = ${moving.labels[position]}`);
    at("epsilon-shown").textContent = moving.labels[position];
    at("answer").innerHTML = moving.answers[position];
    for (const marker of markers) {
      const x = Number(marker.dataset.x.split(" ")[position]);
      // Where the axis has no place for ε, the line waits out of sight.
      for (const end of ["x1", "x2"]) marker.setAttribute(end, Number.isNaN(x) ? -9 : x);
    }
    if (moving.compare) compare();
  }

  // A link shows what was seen; what this page does not have is not taken.
  function read() {
    const asked = new URLSearchParams(location.hash.slice(1)).get("epsilon");
    if (location.hash && asked === null) return;
    const position = asked === null ? moving.position : moving.epsilons.indexOf(asked);
    if (position >= 0) slider.value = position;
    show();
  }

  // One step back undoes one visit to the control, however many keys were pressed in it.
  let visited = false;
  function keep() {
    const state = `#epsilon=${moving.epsilons[slider.value]}`;
    if (location.hash !== state) history[visited ? "replaceState" : "pushState"](null, "", state);
    visited = true;
    const lines = [...at("answer").querySelectorAll("dl.answer > dd")].map((line) => line.textContent);
    at("said").textContent = `ε = ${moving.labels[slider.value]}: ${lines.join(" ")}`;
  }

  // The one place where a browser computes: the difference of two printed numbers, with the decimals of both.
  function number(value, places, plus = "") {
    const options = { minimumFractionDigits: places, maximumFractionDigits: places };
    const text = Math.abs(value).toLocaleString("en-US", options);
    if (!/[1-9]/.test(text)) return "0";
    return (value < 0 ? "−" : plus) + text;
  }

  function compare() {
    const [first, second] = [at("option").selectedIndex, at("than").selectedIndex];
    const { head, rows } = moving.compare.tables[slider.value];
    const letters = moving.compare.options.map(([letter]) => letter);
    const difference = (values) => values[first] - values[second];
    const counted = rows.filter(([, , weight, kind]) => kind === "count" && weight > 0);
    const explained = counted.reduce((sum, [, places, weight, , values]) =>
      sum + weight * Number(difference(values).toFixed(places)), 0);
    const lost = difference(rows.find(([, , , kind]) => kind === "utility")[4]);
    const cells = rows.map(([title, places, , kind, values]) => kind === "rest"
      ? [title, "", "", number(lost - explained, places, "+")]
      : [title, number(values[first], places), number(values[second], places),
        number(difference(values), places, "+")]);
    const [one, other] = [letters[first], letters[second]];
    const lines = [[head, one, other, `${one} − ${other}`], ...cells];
    [...at("compared").rows].forEach((row, place) => { row.hidden = place >= lines.length; });
    lines.forEach((line, place) => line.forEach((text, cell) => {
      at("compared").rows[place].cells[cell].textContent = text;
    }));
  }

  function weigh() {
    const position = Number(at("weight").value);
    at("weight-shown").textContent = moving.weight.labels[position];
    at("weight-verdict").textContent = moving.weight.texts[position];
    at("weight").setAttribute("aria-valuetext", moving.weight.labels[position]);
  }

  slider.max = moving.epsilons.length - 1;
  slider.value = moving.position;
  slider.addEventListener("input", show);
  slider.addEventListener("change", keep);
  slider.addEventListener("blur", () => { visited = false; });
  addEventListener("hashchange", read);
  at("control").hidden = moving.epsilons.length < 2;
  if (moving.compare) {
    for (const id of ["option", "than"]) at(id).addEventListener("change", compare);
    at("compare").hidden = false;
  }
  if (moving.weight) {
    at("weight").max = moving.weight.labels.length - 1;
    at("weight").value = moving.weight.position;
    at("weight").addEventListener("input", weigh);
    at("weigh").hidden = false;
    weigh();
  }
  read();
})();
