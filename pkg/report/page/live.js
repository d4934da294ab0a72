
// A page that is served while what it shows goes on asks for the next state again and
// again. The chosen time follows the run until somebody chooses another one.

let tag = "";
let since = "";
let heldNodes = "";
let heldDecisions = "";

function startLive() {
  byId("follow").addEventListener("click", () => {
    stop();
    setTime(course().length);
  });
  heldNodes = nodesLook();
  heldDecisions = decisionsLook();
  setFollow(true);
  showState();
  poll();
}

function setFollow(follow) {
  live.follow = follow;
  byId("follow").hidden = follow;
}

// poll asks for the state. A tag says which one is known, so that nothing is sent twice.
async function poll() {
  try {
    const answer = await fetch("state.json", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.status === 200) {
      tag = answer.headers.get("ETag") || "";
      take(await answer.json());
    } else if (answer.status !== 304) throw new Error(`the answer was ${answer.status}`);
    since = "";
  } catch (problem) {
    since = since || new Date().toLocaleTimeString();
    console.warn(problem);
  }
  showState();
  if (!data.live.ended) setTimeout(poll, data.live.every * 1000 * (since ? 3 : 1));
}

function showState() {
  const kind = data.live.ended ? "ended" : since ? "lost" : "on";
  byId("pulse").className = `pulse ${kind}`;
  const text = kind === "lost" ? `The program that serves this page has not answered since ${since}. This is the last state that it sent.` : data.live.state;
  if (byId("live-state").textContent !== text) byId("live-state").textContent = text;
}

// take shows another state and keeps what was chosen.
function take(next) {
  const before = course();
  const modelKey = before && before.models[state.model] ? before.models[state.model].id : "";
  const filterKey = before && state.filter >= 0 ? before.variants[state.filter].name : "";
  data = next.data;
  byId("title").textContent = next.title;
  byId("lead").textContent = next.lead;
  takeTables(next.tables);
  const c = course();
  if (!c) return;
  if (!before) {
    readAddress();
    showRun();
    heldNodes = nodesLook();
    heldDecisions = decisionsLook();
    return;
  }
  state.model = Math.max(0, c.models.findIndex((m) => m.id === modelKey));
  state.filter = c.variants.findIndex((v) => v.name === filterKey);
  state.t = live.follow ? c.length : Math.min(state.t, c.length);
  byId("time").max = c.length;
  if (before.models.length !== c.models.length || before.models.some((m, i) => m.id !== c.models[i].id)) showSelectors();
  updateCharts();
  updateNodes();
  updateDecisions();
  showTime();
}

// updateCharts draws into the charts that are there, so that the pointer stays on them.
function updateCharts() {
  const next = specs(current(), state.model);
  if (next.length !== charts.length || next.some((spec, i) => spec.title !== charts[i].spec.title || spec.chip !== charts[i].spec.chip)) {
    makeCharts();
    return;
  }
  next.forEach((spec, i) => {
    charts[i].spec = spec;
  });
  drawCharts();
}

// nodesLook is what the boxes of the map depend on; the replicas in them come and go.
function nodesLook() {
  const c = course();
  if (!c) return "";
  const held = new Set(c.lives.map((life) => life[lifeNode]));
  const nodes = data.clusters[c.cluster] || [];
  // In a crowd no box depends on who holds what.
  const boxes = nodes.length > crowd ? [] : [...held].sort();
  return JSON.stringify([nodes.map((n) => [n.name, n.accelerator, n.devices]), c.variants.map((v) => v.name), boxes, nodes.some((n) => n.others)]);
}

function updateNodes() {
  const look = nodesLook();
  if (look !== heldNodes) {
    heldNodes = look;
    makeNodes();
    return;
  }
  const { views, pools, list } = fleet;
  prepareNodes();
  for (const view of views) view.node = fleet.nodes[view.index];
  Object.assign(fleet, { views, pools, list });
}

function decisionsLook() {
  const c = course();
  return c ? JSON.stringify([c.decisions.length, c.decisions[0], c.decisions[c.decisions.length - 1], state.filter]) : "";
}

function updateDecisions() {
  const look = decisionsLook();
  if (look === heldDecisions) return;
  heldDecisions = look;
  makeFilter();
  makeDecisions();
}

// takeTables fills the tables that are there and adds those that came.
function takeTables(tables) {
  const host = byId("tables");
  tables.forEach((table, i) => {
    const section = host.children[i] || makeSection(host, table);
    const body = section.querySelector("tbody");
    const rows = new Map([...body.rows].map((row) => [row.dataset.key, row]));
    const shown = table.rows.map((row) => takeRow(rows.get(row.key) || el("tr", { "data-run": -1, "data-key": row.key }), row, table.columns));
    if (shown.length !== body.rows.length || shown.some((row) => row.parentNode !== body)) body.replaceChildren(...shown);
    sortTable(section.querySelector("table"));
  });
}

// takeRow changes the cells that differ; a reader may have marked the others.
function takeRow(tr, row, columns) {
  row.cells.forEach(([text, sort], i) => {
    if (!tr.cells[i]) tr.append(el("td", { class: columns[i].text ? "text" : null }));
    const cell = tr.cells[i];
    if (cell.textContent !== text) cell.textContent = text;
    if (cell.dataset.sort !== String(sort)) cell.dataset.sort = sort;
  });
  return tr;
}

// makeSection is a table as the template writes it, without rows.
function makeSection(host, table) {
  const groups = [];
  for (const { group } of table.columns) {
    const last = groups[groups.length - 1];
    if (last && group && last.group === group) last.span++;
    else groups.push({ group, span: 1 });
  }
  const heads = table.columns.map((c) => el("th", { scope: "col", class: c.text ? "text" : null, title: c.hint }, c.name));
  const top = groups.some(({ group }) => group)
    ? el("tr", { class: "groups" }, ...groups.map(({ group, span }) => el("th", { scope: "colgroup", colspan: span }, group))) : null;
  const section = el("section", null, el("h2", null, table.caption),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": table.caption },
      el("table", { class: "numbers" }, el("thead", null, top, el("tr", null, ...heads)), el("tbody"))));
  host.append(section);
  makeTable(section.querySelector("table"));
  return section;
}
