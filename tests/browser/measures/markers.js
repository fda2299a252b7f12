// Where the markers of ε stand on the screen, with the axes around each and the ticks of its ε axis; and how many
// figures have an ε axis. (matplotlib names: axes_N, in it a background patch and matplotlib.axis_M, odd for x.)
() => {
  const rect = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left, right, top, bottom };
  };
  // A figure for narrow screens is not there on wide ones.
  const there = (element) => element.ownerSVGElement.getClientRects().length > 0;
  const axes = [...document.querySelectorAll('svg g[id*="axes_"]')].filter(there).map((group) => {
    const horizontal = [...group.children].find((child) => /matplotlib\.axis_\d*[13579]$/.test(child.id));
    const label = horizontal?.querySelector(':scope > [id*="text_"]')?.textContent ?? "";
    const ticks = [...group.querySelectorAll('g[id*="xtick_"]')].map((tick) => {
      const mark = rect(tick.querySelector("use") ?? tick.querySelector("text"));
      return { value: Number(tick.textContent.trim()), x: (mark.left + mark.right) / 2 };
    });
    const frame = rect(group.querySelector(':scope > [id*="patch_"]'));
    return { svg: group.ownerSVGElement, label, ticks: ticks.filter((tick) => tick.value > 0), frame };
  });
  const markers = [...document.querySelectorAll("[data-marker]")].filter(there).map((line) => {
    const { left, right, top, bottom } = rect(line);
    const x = (left + right) / 2;
    const around = axes.find(({ svg, frame }) =>
      svg === line.ownerSVGElement && x >= frame.left - 1 && x <= frame.right + 1 &&
      top >= frame.top - 1 && bottom <= frame.bottom + 1);
    return { svg: line.ownerSVGElement, name: line.localName, x, width: right - left, height: bottom - top, around };
  });
  const withEpsilon = new Set(axes.filter(({ label }) => label.includes("ε")).map(({ svg }) => svg));
  const unmarked = [...withEpsilon].filter((svg) => !markers.some((marker) => marker.svg === svg));
  return {
    unmarked: unmarked.map((svg) => svg.textContent.trim().replace(/\s+/g, " ").slice(0, 60)),
    markers: markers.map(({ name, x, width, height, around }) => ({
      name, x, width, height, frame: around?.frame ?? null, ticks: around?.ticks ?? [],
    })),
  };
}
