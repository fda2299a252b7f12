// What there is to read: headings, how many figures, tables and words are visible, and places that wait for a word.
// A cell of a table may be empty. Controls are ways around the page, and what is only spoken waits for a choice: none is
// text of it.
() => {
  const STYLED = { visibilityProperty: true };
  const AROUND = ".control, .tool, [aria-live]";
  const visible = (selector) =>
    [...document.querySelectorAll(selector)].filter(
      (element) => element.checkVisibility(STYLED) && !element.closest(AROUND),
    );
  const words = (element) => element.textContent.trim().replace(/\s+/g, " ");
  const places = visible("h1, h2, h3, h4, h5, h6, p, li, dt, dd, caption, figcaption, output, [data-show]");
  return {
    headings: visible("h1, h2, h3, h4, h5, h6").map(words),
    figures: visible("figure svg").length,
    rows: visible("tr").map(words),
    empty: places.filter((place) => !words(place)).map((place) => place.outerHTML.slice(0, 100)),
    paragraphs: visible("p, li, dt, dd, figcaption").map(words),
  };
}
