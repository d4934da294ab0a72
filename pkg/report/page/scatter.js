
// The scatter chart compares the policies of one scene and start-up time. Its upper
// axis is stretched towards 100 %, where the policies that matter differ.

const scatterEdge = { left: 52, right: 16, top: 14, bottom: 38 };

const stretched = (share) => -Math.log10(1.0005 - Math.min(1, Math.max(0, share)));

function rivals() {
  const own = current();
  return data.runs
    .map((run, index) => ({ run, index }))
    .filter(({ run }) => run.scene === own.scene && run.startup === own.startup && run.attainment !== undefined && run.cost !== undefined);
}

function costTicks(low, high) {
  if (high / low <= 2.5) {
    const step = niceStep(high - low, 5);
    const ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high * 1.0001; v += step) ticks.push(v);
    return ticks;
  }
  const ticks = [];
  for (let power = Math.pow(10, Math.floor(Math.log10(low))); power <= high; power *= 10) {
    for (const factor of high / low > 30 ? [1, 3] : [1, 1.5, 2, 3, 5, 7]) {
      if (factor * power >= low && factor * power <= high) ticks.push(factor * power);
    }
  }
  return ticks;
}

// behind is what another script draws behind the runs: lines of points with an attainment and
// a cost. Here is none.
let behind = { shown: () => [], draw() {}, key: () => [] };

function drawScatter() {
  const host = byId("scatter");
  const shown = rivals();
  // A run alone has nobody to be compared with, but still parameters.
  const alone = data.runs.length < 2;
  byId("rivals").hidden = alone;
  byId("compare").hidden = alone && !current().parameters;
  byId("compare").classList.toggle("alone", alone);
  if (shown.length === 0 || alone) {
    host.replaceChildren();
    return;
  }
  const relative = shown.every(({ run }) => run.over !== undefined);
  const cost = (run) => (relative ? run.over : run.cost);
  const lines = behind.shown(shown);
  const positive = shown.filter(({ run }) => cost(run) > 0);
  const width = Math.max(260, Math.floor(host.clientWidth));
  const height = Math.min(380, Math.max(300, width * 0.62));
  const costs = positive.map(({ run }) => cost(run)).concat(lines.flatMap((f) => f.points.map(cost)));
  const low = Math.min(...costs, relative ? 1 : Infinity) * 0.94;
  const high = Math.max(...costs) * 1.08;
  const worst = Math.min(0.98, ...shown.map(({ run }) => run.attainment), ...lines.flatMap((f) => f.points.map((p) => p.attainment)));
  const bottom = stretched(Math.max(0, worst - 0.15 * (1 - worst))) - 0.12;
  const top = stretched(1) + 0.12;
  const box = { w: width - scatterEdge.left - scatterEdge.right, h: height - scatterEdge.top - scatterEdge.bottom };
  const x = (v) => scatterEdge.left + (box.w * Math.log(v / low)) / Math.log(high / low);
  const y = (share) => scatterEdge.top + box.h * (1 - (stretched(share) - bottom) / (top - bottom));
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": "Cost against attainment, one point per policy" });
  drawScatterAxes(picture, { x, y, low, high, bottom, width, height, relative });
  behind.draw(picture, lines, { x, y, cost, relative });
  const taken = [];
  const points = positive.map(({ run, index }) => ({ run, index, px: x(cost(run)), py: y(run.attainment) }));
  for (const point of points) {
    const reach = point.index === state.run ? 10 : 6;
    taken.push({ x: point.px - reach, y: point.py - reach, w: 2 * reach, h: 2 * reach, of: point.index });
  }
  for (const point of points) picture.append(scatterPoint(point, taken, width, height, relative));
  host.replaceChildren(picture, ...behind.key(lines), el("p", { class: "key" }, scatterKey(shown)));
}

function drawScatterAxes(picture, f) {
  let last = Infinity;
  for (const share of [0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 1]) {
    if (stretched(share) < f.bottom) continue;
    const at = Math.round(f.y(share)) + 0.5;
    if (last - at < 18 && share !== 1) continue;
    last = at;
    picture.append(draw("line", { class: "grid", x1: scatterEdge.left, x2: f.width - scatterEdge.right, y1: at, y2: at }));
    picture.append(draw("text", { x: scatterEdge.left - 6, y: at + 4, "text-anchor": "end" }, percent(share)));
  }
  const base = f.height - scatterEdge.bottom;
  let end = -Infinity;
  for (const v of costTicks(f.low, f.high)) {
    const at = f.x(v);
    const text = f.relative ? `${digits(v, 3)}x` : `$${digits(v, 3)}`;
    if (at - end < 14 + text.length * 6) continue;
    end = at;
    picture.append(draw("line", { class: "axis", x1: at, x2: at, y1: base, y2: base + 4 }));
    picture.append(draw("text", { x: at, y: base + 16, "text-anchor": "middle" }, text));
  }
  picture.append(draw("line", { class: "axis", x1: scatterEdge.left, x2: f.width - scatterEdge.right, y1: base, y2: base }));
  const title = f.relative ? "cost, as a multiple of the bound's" : "cost";
  picture.append(draw("text", { x: (scatterEdge.left + f.width - scatterEdge.right) / 2, y: f.height - 4, "text-anchor": "middle" }, title));
  if (f.relative) picture.append(draw("line", { class: "hover", x1: f.x(1), x2: f.x(1), y1: scatterEdge.top, y2: base }));
}

function scatterPoint({ run, index, px, py }, taken, width, height, relative) {
  const select = () => selectRun(index);
  const text = `${run.policy}: ${percent(run.attainment)} met the SLO at ${relative ? `${digits(run.over, 3)} times the bound's cost` : money(run.cost)}`;
  const group = draw("g", {
    tabindex: 0, role: "button", "aria-label": text, "aria-pressed": index === state.run, onclick: select,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      select();
      const again = byId("scatter").querySelector("g[aria-pressed=true]");
      if (again) again.focus();
    },
  }, draw("title", null, text));
  if (index === state.run) group.append(draw("circle", { class: "ring", cx: px, cy: py, r: 9.5 }));
  group.append(mark(run.kind, px, py));
  // What has no place as a whole is shortened: a point without a name says nothing.
  const short = run.policy.split(",")[0];
  for (const name of distinct([run.policy, short, short.split("=")[0], `${run.policy.slice(0, 8)}…`])) {
    const label = { w: measured(name) + 4, h: 14 };
    const places = [
      [px + 11, py - 7], [px - 11 - label.w, py - 7], [px - label.w / 2, py - 24], [px - label.w / 2, py + 10],
      [px + 9, py - 20], [px + 9, py + 6], [px - 9 - label.w, py - 20], [px - 9 - label.w, py + 6], [px - 6, py - 24], [px - 6, py - 38], [px - 6, py + 24],
      [px - label.w + 6, py + 10], [px - label.w + 6, py - 24], [px - label.w + 6, py + 24], [px - label.w + 6, py - 38],
    ];
    // Farther away a line leads to the point.
    for (const far of [-38, -52, -66, 26, 40]) for (const across of [-0.5, 0, -1]) places.push([px + across * label.w, py + far]);
    const free = places.find(([lx, ly]) => lx >= scatterEdge.left && lx + label.w <= width - 2 && ly >= 0 && ly + label.h <= height - scatterEdge.bottom &&
      !taken.some((t) => lx < t.x + t.w && t.x < lx + label.w && ly < t.y + t.h && t.y < ly + label.h && t.of !== index));
    if (free) {
      taken.push({ x: free[0], y: free[1], ...label });
      if (Math.abs(free[1] + 7 - py) > 24) group.append(draw("line", { class: "hover", x1: px, y1: py, x2: px, y2: free[1] + (free[1] < py ? 14 : 0) }));
      group.append(draw("text", { class: "name", x: free[0] + 2, y: free[1] + 11 }, name));
      break;
    }
  }
  return group;
}

// measured is how wide a name is drawn.
const ruler = document.createElement("canvas").getContext("2d");
function measured(name) {
  ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(name).width;
}

// mark has a shape of its own for each kind, beside its colour.
function mark(kind, x, y) {
  if (kind === "ours") return draw("circle", { class: "mark ours", cx: x, cy: y, r: 5.5 });
  if (kind === "reference") return draw("path", { class: "mark reference", d: `M${x} ${y - 6}l6 6-6 6-6-6z` });
  return draw("rect", { class: "mark baseline", x: x - 4.5, y: y - 4.5, width: 9, height: 9 });
}

function scatterKey(shown) {
  const kinds = new Set(shown.map(({ run }) => run.kind));
  const parts = [];
  if (kinds.has("ours")) parts.push("circle: this autoscaler");
  if (kinds.has("baseline")) parts.push("square: others");
  if (kinds.has("reference")) parts.push("diamond: a reference, not a competitor");
  return `${parts.join("; ")}. The upper axis is stretched towards 100%.`;
}

// drawCard shows what the selected run was run with.
function drawCard() {
  const run = current();
  const list = el("dl");
  const say = (name, value) => list.append(el("dt", null, name), el("dd", null, value));
  if (run.attainment !== undefined) say("met SLO", percent(run.attainment));
  if (run.cost !== undefined) say("cost", money(run.cost) + (run.over === undefined ? "" : `, ${digits(run.over, 3)} times the bound`));
  if (run.startup !== undefined) say("start-up", spoken(run.startup));
  const parameters = el("dl");
  for (const [name, value] of run.parameters || []) parameters.append(el("dt", null, name), el("dd", null, value));
  byId("card").replaceChildren(el("h2", null, run.policy), list,
    el("h2", null, "Parameters"), run.parameters ? parameters : el("p", null, "none"));
}
