
// The decisions stand in the order of time. A click moves the time of all pictures.

let rows = [];
let marked = null;

function makeFilter() {
  const c = course();
  const used = new Set(c.decisions.map((d) => d.v));
  const options = [el("option", { value: -1 }, "all variants")];
  c.variants.forEach((v, i) => {
    if (used.has(i)) options.push(el("option", { value: i }, `${letter(i)} ${v.name}`));
  });
  const select = el("select", { onchange: (event) => {
    state.filter = Number(event.target.value);
    makeDecisions();
  } }, ...options);
  if (!used.has(state.filter)) state.filter = -1;
  select.value = String(state.filter);
  byId("filter").replaceChildren(...(used.size > 1 ? [el("label", null, "Variant", select)] : []));
}

function makeDecisions() {
  const c = course();
  const body = el("tbody");
  // Policies that give no reason have no column for it.
  const reasoned = c.decisions.some((d) => d.reason || d.message || d.steps);
  rows = [];
  for (const d of c.decisions) {
    if (state.filter >= 0 && d.v !== state.filter) continue;
    const row = decisionRow(d, c, reasoned);
    rows.push({ t: d.t, row });
    body.append(row);
  }
  const host = byId("decisions");
  if (rows.length === 0) {
    host.replaceChildren(el("p", null, "Nothing was changed."));
    return;
  }
  const heads = ["Time", "Variant", "Replicas", ...(reasoned ? ["Reason"] : [])].map((text) => el("th", { scope: "col" }, text));
  host.replaceChildren(el("table", null, el("thead", null, el("tr", null, ...heads)), body));
  showDecisions(true);
}

function decisionRow(d, c, reasoned) {
  const name = d.v < 0 ? "?" : c.variants[d.v].name;
  const go = () => setTime(d.t);
  const chip = d.v < 0 ? null : el("span", { class: "chip", style: `--c:${color(d.v)}` }, letter(d.v));
  const why = el("td", null, d.reason ? el("span", { class: "reason" }, d.reason) : null, d.message ? `${d.reason ? ": " : ""}${d.message}` : null);
  if (d.steps) {
    const details = el("details", { onclick: (event) => event.stopPropagation(), ontoggle: () => {
      if (details.children.length > 1) return;
      details.append(el("ol", null, ...d.steps.map(([stage, before, after, reason, text]) =>
        el("li", null, `${stage} ${before === after ? after : `${before} \u2192 ${after}`} `, el("b", null, reason), text ? `: ${text}` : ""))));
    } }, el("summary", null, d.steps.length === 1 ? "1 step" : `${d.steps.length} steps`));
    why.append(details);
  }
  return el("tr", { onclick: go },
    el("td", null, el("button", { type: "button", class: "when" }, clock(d.t, c.length))),
    el("td", { class: "name" }, chip, name),
    el("td", { class: "change" }, `${d.from} \u2192 ${d.to}`),
    reasoned ? why : null);
}

// showDecisions marks the last decisions so far and, unless the pointer is on the list,
// brings them into sight; the page itself does not move.
function showDecisions(always) {
  if (rows.length === 0) return;
  const at = lastAt(rows.map((r) => r.t), state.t + 0.05);
  if (at === marked && !always) return;
  marked = at;
  rows.forEach(({ t, row }, i) => {
    row.classList.toggle("now", at >= 0 && t === rows[at].t);
    row.classList.toggle("later", i > at);
  });
  const host = byId("decisions");
  if (!always && (host.matches(":hover") || host.contains(document.activeElement))) return;
  const row = rows[Math.max(0, at)].row;
  host.scrollTop = Math.max(0, row.offsetTop - host.clientHeight / 2);
}
