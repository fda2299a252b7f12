// What is wrong with the texts of each SVG figure: those that lie on one another, those that leave their figure and
// those that are drawn too small. Boxes are oriented, as rotated labels are, and as high as the ink, not as the line.
({ overlap, smallest, within = "body" }) => {
  const ink = document.createElement("canvas").getContext("2d");

  function localBox(text) {
    const box = text.getBBox();
    if (text.childElementCount > 0) return [box.x, box.y, box.x + box.width, box.y + box.height];
    const style = getComputedStyle(text);
    ink.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const height = ink.measureText(text.textContent.trim());
    const baseline = text.getStartPositionOfChar(0).y;
    const [top, bottom] = [baseline - height.actualBoundingBoxAscent, baseline + height.actualBoundingBoxDescent];
    return [box.x, top, box.x + box.width, bottom];
  }

  function corners(text) {
    const [left, top, right, bottom] = localBox(text);
    const matrix = text.getScreenCTM();
    return [[left, top], [right, top], [right, bottom], [left, bottom]].map(([x, y]) => {
      const point = new DOMPoint(x, y).matrixTransform(matrix);
      return [point.x, point.y];
    });
  }

  const directions = (box) =>
    [[0, 1], [1, 2]].map(([from, to]) => {
      const [x, y] = [box[to][0] - box[from][0], box[to][1] - box[from][1]];
      const length = Math.hypot(x, y) || 1;
      return [x / length, y / length];
    });

  function depth(one, other) {
    // Two rectangles are apart if they are along one of their sides; otherwise the smallest overlap is how deep.
    const along = (box, [x, y]) => box.map((corner) => corner[0] * x + corner[1] * y);
    const overlaps = [...directions(one), ...directions(other)].map((direction) => {
      const [a, b] = [along(one, direction), along(other, direction)];
      return Math.min(Math.max(...a), Math.max(...b)) - Math.max(Math.min(...a), Math.min(...b));
    });
    return Math.min(...overlaps);
  }

  const found = { texts: 0, overlapping: [], outside: [], small: [] };
  for (const svg of document.querySelectorAll(`${within} svg`)) {
    const isShown = (text) => text.textContent.trim() && text.checkVisibility({ visibilityProperty: true });
    const shown = [...svg.querySelectorAll("text")].filter(isShown);
    const texts = shown.map((text) => ({ words: text.textContent.trim(), box: corners(text), element: text }));
    const frame = svg.getBoundingClientRect();
    found.texts += texts.length;
    texts.forEach(({ words, box, element }, index) => {
      const [xs, ys] = [box.map((corner) => corner[0]), box.map((corner) => corner[1])];
      const beyond = Math.max(
        frame.left - Math.min(...xs), Math.max(...xs) - frame.right,
        frame.top - Math.min(...ys), Math.max(...ys) - frame.bottom,
      );
      if (beyond > 1) found.outside.push(`“${words}” by ${beyond.toFixed(1)} px`);
      const matrix = element.getScreenCTM();
      const size = parseFloat(getComputedStyle(element).fontSize) * Math.hypot(matrix.a, matrix.b);
      if (size < smallest) found.small.push(`“${words}” at ${size.toFixed(1)} px`);
      for (const other of texts.slice(index + 1)) {
        const deep = depth(box, other.box);
        if (deep > overlap) found.overlapping.push(`“${words}” and “${other.words}” by ${deep.toFixed(1)} px`);
      }
    });
  }
  return found;
}
