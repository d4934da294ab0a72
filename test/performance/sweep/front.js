
// Fronts are drawn behind the runs: of each family of policies what its best settings keep
// and cost, and the front of all others thicker.

// frontsShown are those of the shown scene and start-up time, as far as they are worth a
// look: not what is far below anything that a run keeps, or far cheaper.
function frontsShown(shown) {
  const own = current();
  const fronts = (data.beside || []).filter((f) => (f.scene || "") === (own.scene || "") && f.startup === own.startup);
  const least = Math.min(...shown.map(({ run }) => run.attainment)) - 0.02;
  const cheapest = 0.8 * Math.min(...shown.map(({ run }) => run.cost), ...fronts.flatMap((f) => f.points.map((p) => p.cost)));
  return fronts
    .map((f, index) => ({ ...f, index, points: f.points.filter((p) => p.attainment >= least && p.cost >= cheapest) }))
    .filter((f) => f.points.length > 0);
}

const frontClass = (f) => `front ${f.kind}`;
const frontColor = (f) => (f.kind === "rival" || f.kind === "aside" ? color(f.index) : null);

function drawFronts(picture, fronts, axes) {
  for (const f of fronts) {
    const at = (p) => `${axes.x(axes.cost(p))} ${axes.y(p.attainment)}`;
    const style = frontColor(f) && `stroke:${frontColor(f)}`;
    const line = draw("path", { class: frontClass(f), style, d: `M${f.points.map(at).join("L")}` });
    picture.append(line);
    if (f.kind === "all") continue;
    for (const p of f.points) {
      const cost = axes.relative ? `${digits(p.over, 3)} times the bound's cost` : money(p.cost);
      const dot = draw("circle", { class: "front-dot", cx: axes.x(axes.cost(p)), cy: axes.y(p.attainment), r: 2.5, style: frontColor(f) && `fill:${frontColor(f)}` },
        draw("title", null, `${p.policy || f.family}: ${percent(p.attainment)} met the SLO at ${cost}`));
      picture.append(dot);
    }
  }
}

// frontKey says whose each line is.
function frontKey(fronts) {
  if (fronts.length === 0) return [];
  const entry = (f) => el("span", { class: "front-key" },
    draw("svg", { width: 22, height: 10, "aria-hidden": "true" }, draw("path", { class: frontClass(f), style: frontColor(f) && `stroke:${frontColor(f)}`, d: "M1 5L21 5" })),
    f.family);
  return [el("p", { class: "key" }, ...fronts.map(entry))];
}

behind = { shown: frontsShown, draw: drawFronts, key: frontKey };
