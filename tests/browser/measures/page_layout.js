// What is wrong with the page around its figures: what makes it scroll sideways, text that is cut or too small, and
// boxes that scroll, of which paper shows only the beginning.
({ smallest }) => {
  const name = (element) => {
    const words = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${element.localName}${element.id && "#" + element.id}> “${words}”`;
  };
  const HIDES = ["hidden", "clip"];
  const SCROLLS = ["auto", "scroll"];
  const root = document.scrollingElement;
  const all = [...document.body.querySelectorAll("*:not(svg, svg *)")];
  const elements = all.filter((element) => element.checkVisibility({ visibilityProperty: true }));
  const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
  const texts = (element) => [...element.childNodes].filter(isText);
  const found = { wide: [], small: [], cut: [], scrolled: [] };

  function rightEnd(node) {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getBoundingClientRect().right;
  }

  function scrolls(element) {
    return element !== document.body && element !== root && SCROLLS.includes(getComputedStyle(element).overflowX);
  }

  function inScrollingBox(element) {
    for (let box = element; box; box = box.parentElement) if (scrolls(box)) return true;
    return false;
  }

  if (root.scrollWidth > root.clientWidth) {
    found.wide.push(`the page: ${root.scrollWidth} px on ${root.clientWidth}`);
    const beyond = (element) => texts(element).some((node) => rightEnd(node) > root.clientWidth + 1);
    found.wide.push(...elements.filter((element) => beyond(element) && !inScrollingBox(element)).map(name));
  }
  for (const element of elements) {
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    if (texts(element).length && size < smallest && !element.closest("sup, sub")) {
      found.small.push(`${name(element)}: ${size} px`);
    }
    // A box of one pixel hides words for screen readers on purpose.
    const tooWide = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 1;
    const tooHigh = element.scrollHeight > element.clientHeight + 1 && element.clientHeight > 1;
    if ((tooWide && HIDES.includes(style.overflowX)) || (tooHigh && HIDES.includes(style.overflowY))) {
      found.cut.push(name(element));
    }
    if (tooWide && scrolls(element)) {
      found.scrolled.push(`${name(element)}: ${element.scrollWidth} px on ${element.clientWidth}`);
    }
  }
  return found;
}
