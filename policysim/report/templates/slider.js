"use strict";
(() => {
  const numbers = JSON.parse(document.getElementById("numbers").textContent);
  const slider = document.getElementById("epsilon");
  const choice = document.getElementById("policy");
  const markers = document.querySelectorAll("[data-marker]");
  const places = [...document.querySelectorAll("[data-show]")];
  const minus = (text) => text.replace(/-/g, "−");

  // As the page's own text: whole per cent; two significant digits.
  const percent = (value) => minus(`${Math.round(100 * value) || 0}\u00a0%`);
  const rounded = (value) => {
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    if (Math.abs(value) < 1e-12) return "0";
    if (Math.abs(value) < 1e-4) return minus(value.toExponential(1).replace(/e-(\d)$/, "e-0$1"));
    const text = value.toPrecision(2);
    return minus(Math.abs(text) < 100 ? text : Number(text).toLocaleString("en-US"));
  };
  // What is the same at every ε is listed once.
  const at = (values, position) => values[Math.min(position, values.length - 1)];

  function found(name, position) {
    const policy = numbers.policies[choice.value];
    if (name === "epsilon") return [numbers.epsilons[position], numbers.labels[position]];
    if (name === "odds") {
      const said = numbers.policies[choice.value];
      return [at(said.guesses ?? numbers.guesses, position), at(said.odds ?? numbers.odds, position)];
    }
    if (name.startsWith("p:")) {
      const [, patient, ...action] = name.split(":");
      const value = at(policy.p[patient][numbers.actions.indexOf(action.join(":"))], position);
      return [value, percent(value)];
    }
    const value = Number(at(policy[name], position));
    if (policy.texts[name]) return [value, at(policy.texts[name], position)];
    return [value, name === "loss" || name === "deaths" ? rounded(value) : percent(value)];
  }

  function show() {
    const position = Number(slider.value);
    const label = numbers.labels[position];
    slider.setAttribute("aria-valuetext", `ε = ${label}`);
    document.getElementById("epsilon-shown").textContent = label;
    document.getElementById("policy-shown").textContent = choice.value;
    for (const place of places) {
      const [value, text] = found(place.dataset.show, position);
      place.dataset.value = value;
      place.textContent = text;
      if (place.style.getPropertyValue("--p")) place.style.setProperty("--p", value);
    }
    for (const marker of markers) {
      const x = Number(marker.dataset.x.split(" ")[position]);
      for (const end of ["x1", "x2"]) marker.setAttribute(end, Number.isNaN(x) ? -9 : x);
    }
  }

  slider.addEventListener("input", show);
  choice.addEventListener("input", show);
  document.getElementById("control").hidden = false;
})();
