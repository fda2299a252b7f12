// The parts of a decision's first screen in the order of the document, and where each begins and ends in CSS pixels from
// the top of the page: the title, the sentences, the control, the numbers, and the figure that is shown at this width.
() => {
  const NAMES = { H1: "title", points: "sentences", control: "control", strip: "numbers", svg: "figure" };
  const found = {};
  for (const part of document.querySelectorAll("h1, .points, .control, .strip, #frontier svg")) {
    const name = NAMES[part.tagName] ?? NAMES[part.classList[0]];
    if (!part.checkVisibility() || name in found) continue;
    const { top, bottom } = part.getBoundingClientRect();
    found[name] = [top + scrollY, bottom + scrollY];
  }
  return found;
}
