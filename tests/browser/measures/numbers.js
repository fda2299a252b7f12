// What the page shows now: the slider, and every place that changes with it.
() => {
  const slider = document.getElementById("epsilon");
  const places = {};
  for (const place of document.querySelectorAll("[data-show]")) {
    const value = place.dataset.value === undefined ? null : Number(place.dataset.value);
    (places[place.dataset.show] ??= []).push({ value, text: place.textContent.trim().replace(/\s+/g, " ") });
  }
  return {
    position: Number(slider?.value),
    said: slider?.getAttribute("aria-valuetext"),
    shown: document.getElementById("epsilon-shown")?.textContent.trim(),
    policy: document.getElementById("policy")?.value,
    places,
  };
}
