
// The selectors, the time, and what ties the pictures together.

// spoken writes a stretch of time as 90s is written on the command line: 1m30s.
function spoken(s) {
  const parts = [[Math.floor(s / 3600), "h"], [Math.floor(s / 60) % 60, "m"], [Math.round((s % 60) * 1000) / 1000, "s"]];
  return parts.filter(([n]) => n > 0).map(([n, unit]) => n + unit).join("") || "0s";
}

// The address after # says which run and time are shown, so that it can be passed on.
function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  const number = (name, most, or) => {
    const n = Number(said.get(name));
    return said.has(name) && n >= 0 && n <= most ? n : or;
  };
  state.run = Math.floor(number("run", data.runs.length - 1, firstRun()));
  const c = current() && course();
  state.model = c ? Math.floor(number("model", c.models.length - 1, c.start ? loaded(c) : 0)) : 0;
  state.t = c ? number("t", c.length, live ? c.length : busiest(c)) : 0;
  state.over = new Set((said.get("over") || "").split(" ").filter(Boolean));
}

let saving = 0;
function saveAddress() {
  clearTimeout(saving);
  saving = setTimeout(() => {
    try {
      const at = live ? "" : `&t=${Math.round(state.t)}`;
      const over = state.over.size === 0 ? "" : `&over=${encodeURIComponent([...state.over].join(" "))}`;
      history.replaceState(null, "", `#run=${state.run}&model=${state.model}${at}${over}`);
    } catch { /* an address that cannot be changed is no loss */ }
  }, 300);
}

// firstRun prefers what the page is about: of the first scene and start-up time the run of
// our own policy that knows the promise, then the other one; and one that has a course.
function firstRun() {
  if (data.runs.length === 0) return 0;
  const { scene, startup } = data.runs[0];
  const worth = (run) => {
    if (!run.course) return 0;
    if (run.scene !== scene || run.startup !== startup) return 1;
    return 3 + ["capacity-only", "hybrid"].indexOf(run.policy);
  };
  return data.runs.reduce((best, run, i) => (worth(run) > worth(data.runs[best]) ? i : best), 0);
}

// busiest is when the first model's load is highest: there is something to see.
function busiest(c) {
  const m = c.models[0];
  if (!m || m.load.length === 0) return 0;
  const top = m.load.reduce((best, load, i) => (load > m.load[best] ? i : best), 0);
  return Math.min(c.length, (top + 0.5) * m.step);
}

// loaded is the model with the highest load now.
function loaded(c) {
  const now = c.models.map((m) => m.load[m.load.length - 1] || 0);
  return Math.max(0, now.indexOf(Math.max(...now)));
}

function setTime(t) {
  const c = course();
  state.t = Math.min(c.length, Math.max(0, t));
  if (live) setFollow(state.t >= c.length);
  showTime();
}

function showTime() {
  const c = course();
  byId("time").value = state.t;
  byId("time").setAttribute("aria-valuetext", clock(state.t, c.length));
  byId("clock").textContent = c.start ? clock(state.t, c.length) : `${clock(state.t, c.length)} of ${clock(c.length, c.length)}`;
  showCursor();
  showNodes();
  showDecisions(false);
  saveAddress();
}

function setHover(t) {
  state.hover = t;
  showCursor();
}

// choose makes a selector; with one choice there is nothing to select.
function choose(label, values, chosen, name, pick) {
  if (values.length < 2) return null;
  const select = el("select", { onchange: (event) => pick(values[event.target.selectedIndex]) }, ...values.map((v) => el("option", null, name(v))));
  select.selectedIndex = values.indexOf(chosen);
  return el("label", null, label, select);
}

// like finds the run that differs from the shown one in what is wanted and as little
// else as possible.
function like(wanted) {
  const own = current();
  let best = -1;
  let most = -1;
  data.runs.forEach((run, i) => {
    for (const key of Object.keys(wanted)) if (run[key] !== wanted[key]) return;
    const same = ["scene", "startup", "policy"].reduce((n, key) => n + (run[key] === own[key] ? 1 : 0), 0);
    if (same > most) [best, most] = [i, same];
  });
  return best;
}

const distinct = (values) => [...new Set(values)];

function showSelectors() {
  const own = current();
  const scenes = distinct(data.runs.map((run) => run.scene));
  const startups = distinct(data.runs.filter((run) => run.scene === own.scene).map((run) => run.startup));
  const policies = distinct(data.runs.filter((run) => run.scene === own.scene && run.startup === own.startup).map((run) => run.policy));
  const top = [
    choose("Scene", scenes, own.scene, (v) => v || "other", (scene) => selectRun(like({ scene }))),
    choose("Start-up", startups, own.startup, (v) => spoken(v), (startup) => selectRun(like({ scene: own.scene, startup }))),
  ].filter(Boolean);
  byId("scenes").replaceChildren(...top);
  byId("scenes").hidden = top.length === 0;
  const c = own.course;
  const models = c ? c.models.map((_, i) => i) : [];
  byId("choice").replaceChildren(...[
    choose("Policy", policies, own.policy, (v) => v, (policy) => selectRun(like({ scene: own.scene, startup: own.startup, policy }))),
    choose("Model", models, state.model, (i) => c.models[i].id, chooseModel),
  ].filter(Boolean));
}

function chooseModel(index) {
  state.model = index;
  showSelectors();
  makeCharts();
  makeLegend();
  saveAddress();
}

function selectRun(index) {
  if (index < 0) return;
  const before = course();
  stop();
  state.run = index;
  state.hover = null;
  const c = course();
  if (c) {
    state.model = Math.min(state.model, Math.max(0, c.models.length - 1));
    state.t = before ? Math.min(state.t, c.length) : busiest(c);
  }
  showRun();
}

function showRun() {
  const run = current();
  showSelectors();
  for (const row of document.querySelectorAll("tr[data-run]")) {
    const index = Number(row.dataset.run);
    row.classList.toggle("picked", index === state.run && data.runs.length > 1);
    if (index >= 0) row.hidden = data.runs[index].scene !== run.scene;
  }
  drawScatter();
  drawCard();
  // A run without a course still offers the others.
  const c = run.course;
  for (const id of ["over", "transport", "charts", "below"]) byId(id).hidden = !c;
  byId("run").hidden = false;
  byId("run-title").textContent = data.runs.length > 1
    ? `The run of ${run.policy}${run.startup === undefined ? "" : `, start-up ${spoken(run.startup)}`}${c ? "" : ": its course was not recorded"}` : c && c.start ? "Load, latency and replicas over time" : "The run";
  if (!c) return;
  const slider = byId("time");
  slider.max = c.length;
  slider.step = c.length > 7200 ? 10 : 1;
  makeOver();
  makeCharts();
  makeNodes();
  makeFilter();
  makeDecisions();
  showTime();
}

// The play button sweeps the run in playSeconds; with reduced motion it goes from event
// to event instead.
const playSeconds = 60;
let playing = 0;

function stop() {
  clearTimeout(playing);
  cancelAnimationFrame(playing);
  playing = 0;
  showPlaying();
}

function showPlaying() {
  byId("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  byId("play").querySelector("path").setAttribute("d", playing ? "M3 2h4v12H3zM9 2h4v12H9z" : "M4 2l9 6-9 6z");
}

function play() {
  if (state.t >= course().length) setTime(0);
  if (calm()) {
    const step = () => {
      playing = setTimeout(step, 1000);
      if (!jump(1)) stop();
    };
    playing = setTimeout(step, 1000);
  } else {
    let last = performance.now();
    const frame = (now) => {
      setTime(state.t + ((now - last) / 1000 / playSeconds) * course().length);
      last = now;
      if (state.t >= course().length) stop();
      else playing = requestAnimationFrame(frame);
    };
    playing = requestAnimationFrame(frame);
  }
  showPlaying();
}

// jump goes to the next event of the replicas and the decisions, or the one before.
function jump(direction) {
  const at = lastAt(fleet.events, state.t);
  let next = direction > 0 ? at + 1 : at;
  if (direction < 0 && fleet.events[at] >= state.t) next--;
  if (next < 0 || next >= fleet.events.length) return false;
  setTime(fleet.events[next]);
  return true;
}

function makeTransport() {
  byId("time").addEventListener("input", (event) => {
    stop();
    setTime(Number(event.target.value));
  });
  byId("play").addEventListener("click", () => (playing ? stop() : play()));
  byId("previous").addEventListener("click", () => { stop(); jump(-1); });
  byId("next").addEventListener("click", () => { stop(); jump(1); });
}

// A table is sorted by a click on a column's name. The first column of a row with a run
// selects it.
function makeTable(table) {
  const heads = [...table.querySelectorAll("thead tr:last-child th")];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    const text = head.textContent;
    head.replaceChildren(el("button", { type: "button", onclick: () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sortTable(table);
    } }, text));
    if (head.classList.contains("text")) for (const row of body.rows) row.cells[column].classList.add("text");
  });
  if (data.runs.length < 2) return;
  // Only the rows of the chosen scene are shown, so its column, the last one, is idle.
  if (heads[heads.length - 1].textContent === "Scene") for (const row of table.rows) row.lastElementChild.hidden = true;
  const policy = heads.findIndex((head) => head.textContent === "Policy");
  for (const row of body.rows) {
    const index = Number(row.dataset.run);
    if (index < 0 || policy < 0) continue;
    const cell = row.cells[policy];
    cell.replaceChildren(el("button", { type: "button", onclick: () => selectRun(index) }, cell.textContent));
  }
}

// sortTable puts the rows into the order that a click has chosen. Rows that are in order
// stay where they are.
function sortTable(table) {
  const head = table.querySelector("th[aria-sort]");
  if (!head) return;
  const column = head.cellIndex;
  const body = table.tBodies[0];
  const value = (row) => Number(row.cells[column].dataset.sort);
  const word = (row) => row.cells[column].textContent;
  const way = head.getAttribute("aria-sort") === "descending" ? -1 : 1;
  const name = (row) => row.cells[0].textContent;
  // Rows that are alike in this column stand by their names, so that they stay in their places.
  const sorted = [...body.rows].sort((a, b) => way * (value(a) - value(b) || word(a).localeCompare(word(b))) || name(a).localeCompare(name(b)));
  if (sorted.some((row, i) => row !== body.rows[i])) body.append(...sorted);
}

// The theme follows the system until the button says otherwise.
function makeTheme() {
  const root = document.documentElement;
  const button = byId("theme");
  const themes = ["system", "light", "dark"];
  let theme = "system";
  try {
    theme = localStorage.getItem("wva-report-theme") || theme;
  } catch { /* nothing is remembered then */ }
  const show = () => {
    if (theme === "system") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("wva-report-theme", theme);
    } catch { /* nothing is remembered then */ }
    show();
  });
  button.hidden = false;
  show();
}

function start() {
  makeTheme();
  document.querySelectorAll("table.numbers").forEach(makeTable);
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
  if (data.runs.length === 0) return;
  makeTransport();
  readAddress();
  showRun();
  if (live) startLive();
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    drawScatter();
    if (course()) drawCharts();
  });
  window.addEventListener("hashchange", () => {
    stop();
    readAddress();
    showRun();
  });
}

start();
