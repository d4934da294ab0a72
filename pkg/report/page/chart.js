
// The charts of a run share the time axis, the chosen time and the time under the
// pointer.

const charts = [];
const edge = { left: 46, right: 10, top: 10, bottom: 20 };

// A scale has ticks and turns a value into a height.
function linear(top, whole) {
  const step = Math.max(niceStep(top || 1, 4), whole ? 1 : 0);
  const max = Math.max(step, Math.ceil((top || 1) / step - 1e-9) * step);
  const ticks = [];
  for (let y = 0; y <= max + step / 1e6; y += step) ticks.push(y);
  return { ticks, at: (y, height) => height * (1 - Math.min(y, max) / max) };
}

function logarithmic(bottom, top) {
  const low = Math.pow(10, Math.floor(Math.log10(bottom)));
  const high = Math.pow(10, Math.ceil(Math.log10(top) - 1e-9));
  const span = Math.max(1, Math.log10(high / low));
  const ticks = [];
  for (let y = low; y <= high * 1.001; y *= 10) ticks.push(y);
  if (span < 2) for (const y of [low * 2, low * 5]) ticks.push(y);
  return { ticks, logarithmic: true, at: (y, height) => height * (1 - Math.log10(Math.max(y, low) / low) / span) };
}

// latencyScale is linear from zero unless a few values would flatten all others.
function latencyScale(values, limit) {
  const known = values.filter((v) => v !== null && v > 0);
  const top = Math.max(limit * 1.15, ...known);
  if (known.length > 0 && limit > 0 && top > 8 * limit) return logarithmic(Math.min(limit, ...known), top);
  return linear(top, false);
}

// specs are what there is to draw of one model.
function specs(run, index) {
  const c = run.course;
  const m = c.models[index];
  if (!m) return [];
  const at = (list, of = m) => (t) => list[Math.min(list.length - 1, Math.max(0, Math.floor(t / of.step)))];
  const sampled = (list, of = m) => ({ t: list.map((_, i) => Math.min(c.length, (i + 0.5) * of.step)), y: list });
  const stepped = (list) => ({ t: list.map((_, i) => i * m.step), y: list, step: true });
  const others = overlaid(m.id);
  // every is what all that are drawn have of something, and above are those that are laid over.
  const every = (key) => [m, ...others.map((o) => o.model)].flatMap((of) => of[key]);
  const above = (key, read) => others.map((o) => ({
    ...sampled(o.model[key], o.model), color: o.color, dash: o.dash, read: (t) => read(at(o.model[key], o.model)(t)),
  }));
  const percentScale = (list) => {
    const low = Math.min(1, ...list.filter((y) => y !== null));
    const floor = low >= 0.9 ? 0.9 : low >= 0.5 ? 0.5 : 0;
    const ticks = { 0: [0, 0.25, 0.5, 0.75, 1], 0.5: [0.5, 0.6, 0.7, 0.8, 0.9, 1], 0.9: [0.9, 0.92, 0.94, 0.96, 0.98, 1] }[floor];
    return { ticks, at: (y, height) => (height * (1 - y)) / (1 - floor) };
  };
  const latencySpec = (title, key, slo) => {
    const list = m[key];
    const scale = latencyScale(every(key), slo);
    return { title, unit: scale.logarithmic ? "p95, logarithmic" : "p95", scale, tick: latency,
      limit: slo > 0 ? { value: slo, text: `SLO ${latency(slo)}` } : null,
      over: above(key, latency),
      lines: [{ ...sampled(list), color: "var(--accent)" }], read: (t) => latency(at(list)(t)) };
  };
  const all = [
    { title: "Load", unit: "requests/s", scale: linear(Math.max(...m.load, 0)), tick: rate,
      areas: [{ ...sampled(m.load), color: "var(--accent)" }], lines: [{ ...sampled(m.load), color: "var(--accent)" }],
      read: (t) => `${rate(at(m.load)(t))}/s` },
    m.met && { title: "Attainment", unit: "share that met the SLO", scale: percentScale(every("met")), tick: (y) => `${Math.round(y * 100)}%`, over: above("met", percent),
      lines: [{ ...sampled(m.met), color: "var(--v2)" }], read: (t) => percent(at(m.met)(t)) },
    latencySpec("TTFT", "ttft", m.sloTtft),
    latencySpec("ITL", "itl", m.sloItl),
    m.cost && { title: "Cost", unit: "$/h", scale: linear(Math.max(0, ...every("cost"), ...(m.bound || []))), tick: (y) => `$${digits(y, 3)}`,
      over: above("cost", (y) => `${money(y)}/h`),
      areas: [{ ...stepped(m.cost), color: "var(--v3)" }], lines: [
        { ...stepped(m.cost), color: "var(--v3)" },
        ...(m.bound ? [{ ...sampled(m.bound), color: "var(--ink)", dashed: true }] : []),
      ],
      read: (t) => [`${money(at(m.cost)(t))}/h`, ...(m.bound ? [el("i", { class: "swatch stroke dashes" }), `bound ${money(at(m.bound)(t))}/h`] : [])] },
  ];
  c.variants.forEach((v, i) => {
    const over = others.flatMap((o) => o.variants.filter((w) => w.name === v.name && isUsed(w)).map((w) => ({
      t: w.t, y: w.wanted, step: true, color: o.color, dash: o.dash, read: (t) => `${w.wanted[Math.max(0, lastAt(w.t, t))]} wanted`,
    })));
    if (v.model === index && (isUsed(v) || over.length > 0)) all.push(replicaSpec(v, i, over));
  });
  return all.filter(Boolean);
}

const isUsed = (v) => v.wanted.some((n) => n > 0) || v.ready.some((n) => n > 0);

// takes is what a replica takes, and what it costs where somebody gave a price.
const takes = (v) => `${v.devices}x${v.accelerator}${v.cost === undefined ? "" : `, ${money(v.cost)}/h each`}`;

// unused names the variants that get no chart because they had no replica.
function unused() {
  const c = course();
  const items = [];
  c.variants.forEach((v, i) => {
    if (v.model !== state.model || isUsed(v)) return;
    items.push(el("span", null, el("span", { class: "chip", style: `--c:${color(i)}` }, letter(i)), `${v.name} (${takes(v)}) `));
  });
  return items.length ? [el("p", { class: "unused" }, live ? "Not used so far: " : "Never used: ", ...items)] : [];
}

function replicaSpec(v, i, over) {
  const known = (t) => Math.max(0, lastAt(v.t, t));
  return {
    title: v.name, chip: i, unit: takes(v),
    over, scale: linear(Math.max(...v.wanted, ...v.ready, ...over.flatMap((o) => o.y), 1), true), tick: (y) => digits(y, 3),
    areas: [{ t: v.t, y: v.ready, step: true, color: color(i), strong: true }],
    lines: [{ t: v.t, y: v.wanted, step: true, color: "var(--ink)" }],
    read: (t) => (v.t.length === 0 ? ["-"] : [
      el("i", { class: "swatch stroke" }), `${v.wanted[known(t)]} wanted `,
      el("i", { class: "swatch", style: `background:${color(i)};opacity:0.55` }), `${v.ready[known(t)]} ready`,
    ]),
  };
}

// path draws a series; null makes a gap. base is the height to close an area at.
function path(series, x, y, end, base) {
  let text = "";
  let open = false;
  let lastX = 0;
  const close = () => {
    if (open && base !== null) text += `V${base}Z`;
    open = false;
  };
  series.y.forEach((value, i) => {
    if (value === null) {
      close();
      return;
    }
    const px = x(series.t[i]).toFixed(1);
    const py = y(value).toFixed(1);
    if (!open) text += base === null ? `M${px} ${py}` : `M${px} ${base}V${py}`;
    else text += series.step ? `H${px}V${py}` : `L${px} ${py}`;
    // A point between two gaps would not be seen.
    if (!open && base === null && !series.step && (i + 1 >= series.y.length || series.y[i + 1] === null)) text += "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0";
    open = true;
    lastX = px;
  });
  if (open && series.step) {
    lastX = x(end).toFixed(1);
    text += `H${lastX}`;
  }
  close();
  return text;
}

function makeChart(spec) {
  const chip = spec.chip === undefined ? null : el("span", { class: "chip", style: `--c:${color(spec.chip)}` }, letter(spec.chip));
  const read = el("output");
  const picture = draw("svg", { role: "img", "aria-label": `${spec.title}, ${spec.unit}, over time` });
  const figure = el("figure", null,
    el("figcaption", null, el("span", null, chip, el("b", null, spec.title), " ", el("span", { class: "unit" }, spec.unit)), read), picture);
  const chart = { spec, figure, picture, read, width: 0 };
  const seek = (event) => {
    const box = picture.getBoundingClientRect();
    const share = (event.clientX - box.left - edge.left) / (chart.width - edge.left - edge.right);
    return Math.min(1, Math.max(0, share)) * course().length;
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    picture.setPointerCapture(event.pointerId);
    setTime(seek(event));
  });
  picture.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) setTime(seek(event));
    else if (event.pointerType === "mouse") setHover(seek(event));
  });
  picture.addEventListener("pointerleave", () => setHover(null));
  return chart;
}

// firstTick is the first time that is a whole number of steps by the clock.
const firstTick = (step) => (step - (beginning() % step)) % step;

function drawChart(chart) {
  const { spec, picture } = chart;
  const width = Math.max(200, Math.floor(picture.parentNode.clientWidth));
  const height = spec.chip === undefined ? 150 : 120;
  chart.width = width;
  const innerWidth = width - edge.left - edge.right;
  const innerHeight = height - edge.top - edge.bottom;
  const length = course().length || 1;
  const x = (t) => edge.left + (innerWidth * Math.min(t, length)) / length;
  const y = (value) => edge.top + spec.scale.at(value, innerHeight);
  const base = edge.top + innerHeight;
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("height", height);
  for (const tick of spec.scale.ticks) {
    const at = Math.round(y(tick)) + 0.5;
    picture.append(draw("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: at, y2: at }));
    picture.append(draw("text", { x: edge.left - 6, y: at + 4, "text-anchor": "end" }, spec.tick(tick)));
  }
  const step = niceTimeStep(length, Math.max(2, Math.floor(innerWidth / 70)));
  for (let t = firstTick(step); t <= length; t += step) {
    picture.append(draw("line", { class: "axis", x1: x(t), x2: x(t), y1: base, y2: base + 4 }));
    const near = x(t) > width - 30 ? "end" : "middle";
    picture.append(draw("text", { x: near === "end" ? width - 2 : x(t), y: height - 3, "text-anchor": near }, tickClock(t, step, length)));
  }
  picture.append(draw("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: base + 0.5, y2: base + 0.5 }));
  for (const area of spec.areas || []) {
    picture.append(draw("path", { d: path(area, x, y, length, base), style: `fill:${area.color}`, opacity: area.strong ? 0.55 : 0.18 }));
  }
  for (const line of spec.lines) {
    picture.append(draw("path", { class: line.dashed ? "line dashed" : "line", d: path(line, x, y, length, null), style: `stroke:${line.color}` }));
  }
  for (const line of spec.over || []) {
    picture.append(draw("path", { class: "line", d: path(line, x, y, length, null), style: `stroke:${line.color};stroke-dasharray:${line.dash}` }));
  }
  if (spec.limit) {
    const at = y(spec.limit.value);
    picture.append(draw("line", { class: "limit", x1: edge.left, x2: width - edge.right, y1: at, y2: at }));
    picture.append(draw("text", { class: "limit-text", x: width - edge.right - 2, y: at < edge.top + 14 ? at + 13 : at - 4, "text-anchor": "end" }, spec.limit.text));
  }
  chart.x = x;
  chart.cursor = draw("line", { class: "cursor", y1: edge.top, y2: base });
  chart.hover = draw("line", { class: "hover", y1: edge.top, y2: base });
  picture.append(chart.cursor, chart.hover);
}

// showCursor moves the cursors and what is read at them.
function showCursor() {
  const t = state.hover === null ? state.t : state.hover;
  for (const chart of charts) {
    if (!chart.x) continue;
    for (const [line, at] of [[chart.cursor, state.t], [chart.hover, state.hover]]) {
      line.style.display = at === null ? "none" : "";
      if (at === null) continue;
      line.setAttribute("x1", chart.x(at));
      line.setAttribute("x2", chart.x(at));
    }
    const over = (chart.spec.over || []).map((line) => el("span", { class: "over", style: `color:${line.color}` }, line.read(t)));
    chart.read.replaceChildren(...[chart.spec.read(t)].flat(), ...over);
  }
}

function drawCharts() {
  for (const chart of charts) drawChart(chart);
  showCursor();
}

function makeCharts() {
  charts.length = 0;
  for (const spec of specs(current(), state.model)) charts.push(makeChart(spec));
  byId("charts").replaceChildren(...charts.map((chart) => chart.figure), ...unused());
  drawCharts();
}
