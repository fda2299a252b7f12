"use strict";
(() => {
  const numbers = JSON.parse(document.getElementById("numbers").textContent);
  const slider = document.getElementById("epsilon");
  const choice = document.getElementById("policy");
  const all = (selector) => [...document.querySelectorAll(selector)];
  const places = all("[data-show]");
  const markers = all("[data-marker]");
  const drawn = all("[data-policy]");
  const rows = all("[data-row]");
  const names = all(".policy-shown");
  const bars = new Set(all(".bar, .patient dd"));
  const start = { epsilon: String(numbers.epsilons[slider.value]), policy: choice.value };
  const minus = (text) => text.replace(/-/g, "−");

  // As the page's own text: whole per cent; two significant digits; nothing finer than a hundredth of an event.
  const percent = (value) => minus(`${Math.round(100 * value) || 0}\u00a0%`);
  const rounded = (value) => {
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    if (Math.abs(value) < 1e-12) return "0";
    if (Math.abs(value) < 1e-4) return minus(value.toExponential(1).replace(/e-(\d)$/, "e-0$1"));
    const text = value.toPrecision(2);
    return minus(Math.abs(text) < 100 ? text : Number(text).toLocaleString("en-US"));
  };
  const events = (rate) => {
    const value = rate * numbers.count;
    if (value !== 0 && Math.abs(value) < 0.01) return "≈ 0";
    return (Math.abs(value) < 1e-12 || value < 0 ? "" : "+") + rounded(value);
  };
  // All deaths: as many decimals as tell apart those that they stand beside.
  const deaths = (rate) => {
    const digits = { minimumFractionDigits: numbers.places, maximumFractionDigits: numbers.places };
    return minus((rate * numbers.count).toLocaleString("en-US", digits));
  };
  const written = {
    benefit_kept: percent,
    extra_deaths: events,
    guess_rate: (value) => String(Math.ceil(Math.round(1e6 * value) / 1e3) / 10),
  };
  // What is the same at every ε is listed once.
  const at = (values, position) => values[Math.min(position, values.length - 1)];

  function found(name, position) {
    const policy = numbers.policies[choice.value];
    const [kind, ...rest] = name.split(":");
    if (kind === "epsilon") return [numbers.epsilons[position], numbers.labels[position]];
    if (kind === "odds") {
      const right = at(policy.guesses ?? numbers.guesses, position);
      const said = policy.odds ? policy.odds[0] : numbers.odds;
      return [right / 100, said.replace("{epsilon}", numbers.labels[position]).replace("{right}", right)];
    }
    if (kind === "p") {
      const value = at(policy.p[rest[0]][numbers.actions.indexOf(rest.slice(1).join(":"))], position) / 100;
      return [value, percent(value)];
    }
    if (kind === "g") {
      const value = at(policy.groups[rest[0]], position);
      const most = Math.max(...policy.groups.map((losses) => at(losses, position)));
      return [value, rounded(value), most > 0 ? Math.max(0, value / most) : 0];
    }
    if (name === "deaths") {
      const value = numbers.deaths + at(policy.extra_deaths, position);
      return [value, deaths(value)];
    }
    if (!policy[name]) return ["", "–"];
    const value = at(policy[name], position);
    if (policy.texts?.[name]) return [value, at(policy.texts[name], position)];
    return value === null ? ["", "–"] : [value, (written[name] ?? rounded)(Number(value))];
  }

  function show() {
    const position = Number(slider.value);
    const label = numbers.labels[position];
    slider.setAttribute("aria-valuetext", `ε = ${label}`);
    document.getElementById("epsilon-shown").textContent = label;
    for (const name of names) name.textContent = choice.value;
    for (const place of places) {
      const [value, text, part] = found(place.dataset.show, position);
      place.dataset.value = value;
      place.textContent = text;
      const bar = part === undefined ? place : place.parentElement;
      if (bars.has(bar)) bar.style.setProperty("--p", part ?? value);
    }
    for (const marker of markers) {
      const x = Number(marker.dataset.x.split(" ")[position]);
      for (const end of ["x1", "x2"]) marker.setAttribute(end, Number.isNaN(x) ? -9 : x);
    }
    emphasise();
  }

  // The chosen policy before the others, wherever it is drawn or listed.
  function emphasise() {
    for (const each of drawn) each.classList.toggle("chosen", each.dataset.policy === choice.value);
    for (const figure of new Set(drawn.map((each) => each.ownerSVGElement))) {
      figure.classList.toggle("choosing", figure.querySelector("[data-policy].chosen") !== null);
    }
    for (const row of rows) row.classList.toggle("chosen", row.dataset.row === choice.value);
  }

  // The state as the page's address has it: a link shows what was seen. Where a link of the contents led is kept beside.
  function state(section) {
    const words = new URLSearchParams({ epsilon: String(numbers.epsilons[slider.value]), policy: choice.value });
    if (section) words.set("at", section);
    return `#${words}`;
  }

  let seen = false;
  function read() {
    const words = new URLSearchParams(location.hash.slice(1));
    const stated = words.has("epsilon") || words.has("policy");
    if (location.hash ? !stated : !seen) return null;
    const position = numbers.epsilons.findIndex((value) => String(value) === (words.get("epsilon") ?? start.epsilon));
    const policy = words.get("policy") ?? start.policy;
    seen = true;
    // What this page does not have is not taken.
    if (position >= 0) slider.value = position;
    if (Object.hasOwn(numbers.policies, policy)) choice.value = policy;
    show();
    return words.get("at");
  }

  // One step back undoes one visit to a control, however many keys were pressed in it.
  let visited = null;
  function keep(control) {
    seen = true;
    if (location.hash !== state()) history[visited === control ? "replaceState" : "pushState"](null, "", state());
    visited = control;
    const shown = all(".strip div").map((tile) => {
      const number = tile.querySelector("[data-show]").textContent;
      return `${number} ${tile.querySelector("dt").textContent}`;
    });
    document.getElementById("said").textContent =
      `${choice.value} at ε = ${numbers.labels[slider.value]}: ${shown.join("; ")}`;
  }

  for (const control of [slider, choice]) {
    control.addEventListener("input", show);
    control.addEventListener("change", () => keep(control));
    control.addEventListener("blur", () => { visited = null; });
  }
  addEventListener("hashchange", () => {
    const section = location.hash.slice(1);
    read();
    // A link of the contents leaves what is chosen in the address.
    if (document.getElementById(section)) history.replaceState(null, "", state(section));
  });
  document.getElementById("control").hidden = false;
  // Until something is chosen, the page's own text stands.
  emphasise();
  const section = read();
  if (section) document.getElementById(section)?.scrollIntoView();
})();
