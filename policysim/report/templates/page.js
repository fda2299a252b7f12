"use strict";
(() => {
  // The answer at each position of the slider is written beforehand, and put in its place.
  const moving = JSON.parse(document.getElementById("moving").textContent);
  const slider = document.getElementById("epsilon");
  const answer = document.getElementById("answer");
  const markers = [...document.querySelectorAll("[data-marker]")];

  function show() {
    const position = Number(slider.value);
    slider.setAttribute("aria-valuetext", `ε = ${moving.labels[position]}`);
    document.getElementById("epsilon-shown").textContent = moving.labels[position];
    answer.innerHTML = moving.answers[position];
    for (const marker of markers) {
      const x = Number(marker.dataset.x.split(" ")[position]);
      // Where the axis has no place for ε, the line waits out of sight.
      for (const end of ["x1", "x2"]) marker.setAttribute(end, Number.isNaN(x) ? -9 : x);
    }
    document.body.classList.toggle("moved", position !== moving.position);
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
    const moved = document.body.classList.contains("moved");
    const lines = [...answer.querySelectorAll("dl.answer dd")].map((line) => {
      const mark = moved && line.previousElementSibling.querySelector(".stays");
      return mark ? `${mark.textContent}: ${line.textContent}` : line.textContent;
    });
    document.getElementById("said").textContent = `ε = ${moving.labels[slider.value]}: ${lines.join(" ")}`;
  }

  slider.max = moving.epsilons.length - 1;
  slider.value = moving.position;
  slider.addEventListener("input", show);
  slider.addEventListener("change", keep);
  slider.addEventListener("blur", () => { visited = false; });
  addEventListener("hashchange", read);
  document.getElementById("control").hidden = moving.epsilons.length < 2;
  read();
})();
