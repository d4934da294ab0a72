
// The map shows every device of every node at the chosen time. Which device of its node
// a replica is drawn on is made up, and stays the same for as long as it is there.

// A life is a replica: [variant, node, created, placed, serving, leaving, gone, name].
const [lifeVariant, lifeNode, lifeCreated, lifePlaced, lifeServing, lifeLeaving, lifeGone, lifeName] = [0, 1, 2, 3, 4, 5, 6, 7];

let fleet = null;

// prepareNodes gives every replica its devices and collects the events of the run.
function prepareNodes() {
  const c = course();
  const nodes = data.clusters[c.cluster] || [];
  const own = nodes.map(() => []);
  const waiting = [];
  for (const life of c.lives) {
    if (life[lifeNode] >= 0 && life[lifePlaced] >= 0) own[life[lifeNode]].push({ life, spots: [] });
    if (life[lifeNode] < 0 || life[lifePlaced] > life[lifeCreated]) waiting.push(life);
  }
  own.forEach((list, i) => assignDevices(list, nodes[i], c.variants));
  const events = new Set([0, c.length]);
  for (const life of c.lives) {
    for (const t of life.slice(lifeCreated, lifeGone + 1)) if (t >= 0 && t <= c.length) events.add(t);
  }
  for (const d of c.decisions) events.add(d.t);
  fleet = { nodes, own, waiting, events: [...events].sort((a, b) => a - b), views: [], pools: [] };
}

const goneAt = (life) => (life[lifeGone] < 0 ? Infinity : life[lifeGone]);

function assignDevices(list, node, variants) {
  list.sort((a, b) => a.life[lifePlaced] - b.life[lifePlaced]);
  const busyUntil = new Array(node.devices).fill(-1);
  for (let i = 0; i < (node.others || 0); i++) busyUntil[i] = Infinity;
  for (const held of list) {
    const want = variants[held.life[lifeVariant]].devices;
    const free = [];
    busyUntil.forEach((until, i) => {
      if (until <= held.life[lifePlaced]) free.push(i);
    });
    let start = free.findIndex((_, i) => free[i + want - 1] === free[i] + want - 1);
    if (start < 0) start = 0;
    held.spots = free.slice(start, start + want);
    for (const spot of held.spots) busyUntil[spot] = goneAt(held.life);
  }
}

function stageOf(life, t) {
  if (t < life[lifePlaced] || t >= goneAt(life)) return null;
  if (life[lifeLeaving] >= 0 && t >= life[lifeLeaving]) return "leaving";
  return life[lifeServing] >= 0 && t >= life[lifeServing] ? "serving" : "starting";
}

function makeNodes() {
  prepareNodes();
  const host = byId("nodes");
  const pools = new Map();
  fleet.nodes.forEach((node, i) => {
    if (node.devices === 0) return;
    if (!pools.has(node.accelerator)) pools.set(node.accelerator, []);
    pools.get(node.accelerator).push(i);
  });
  fleet.list = el("div", { class: "waiting-list" });
  host.replaceChildren(fleet.list);
  if (pools.size === 0) host.append(el("p", { class: "note" }, "Nothing is known of the nodes of this run."));
  fleet.pools = [];
  let inSight = 0;
  for (const [accelerator, members] of pools) {
    const heading = el("p", { class: "pool" });
    if (members.length > crowd) {
      host.append(heading, ...makeCrowd(accelerator, members, heading));
      continue;
    }
    const box = el("div", { class: "nodes" });
    const idle = el("div", { class: "nodes" });
    for (const i of members) {
      const apart = members.length > manyNodes && fleet.own[i].length === 0;
      (apart ? idle : box).append(makeNode(i));
      if (!apart) inSight++;
    }
    fleet.pools.push({ accelerator, members, heading });
    host.append(heading, box);
    if (idle.children.length > 0) host.append(el("details", null, el("summary", null, idleNodes(members)), idle));
  }
  host.classList.toggle("dense", inSight > 60);
  makeLegend();
  showNodes();
}

// A pool of more nodes than this is added up; its nodes are drawn when somebody asks for them.
const crowd = 48;

function makeCrowd(accelerator, members, heading) {
  const bar = el("div", { class: "bar", role: "img" });
  const holes = el("p", { class: "note" });
  const box = el("div", { class: "nodes dense" });
  const details = el("details", { ontoggle: () => {
    fleet.views = fleet.views.filter((view) => !members.includes(view.index));
    box.replaceChildren(...(details.open ? members.map(makeNode) : []));
    showNodes();
  } }, el("summary", null, "Every node"), box);
  fleet.pools.push({ accelerator, members, heading, bar, holes });
  return [bar, holes, details];
}

// showCrowd draws what the devices of a pool do, and how many nodes have room for how much.
function showCrowd({ accelerator, members, bar, holes }, here) {
  const sums = { serving: 0, starting: 0, leaving: 0, other: 0, free: 0 };
  const rooms = new Map();
  for (const i of members) {
    const node = fleet.nodes[i];
    const others = node.others || 0;
    let free = node.devices - others;
    for (const held of here[i]) {
      sums[held.stage] += held.spots.length;
      free -= held.spots.length;
    }
    sums.other += others;
    sums.free += free;
    rooms.set(free, (rooms.get(free) || 0) + 1);
  }
  const words = { other: "other work" };
  const parts = Object.entries(sums).filter(([, n]) => n > 0);
  const all = parts.reduce((sum, [, n]) => sum + n, 0);
  // A number that does not fit would be read as another one.
  bar.replaceChildren(...parts.map(([name, n]) => el("span", {
    class: `slot ${name === "free" ? "" : name}`, style: `--c:var(--accent);flex:${n} 1 0`, title: `${n} ${words[name] || name}`,
  }, n > 0.12 * all ? n : null)));
  bar.setAttribute("aria-label", `${accelerator}: ${parts.map(([name, n]) => `${n} ${words[name] || name}`).join(", ")}`);
  const counts = [...rooms].sort((a, b) => b[0] - a[0]).map(([free, n]) => `${free} free on ${n} ${n === 1 ? "node" : "nodes"}`);
  holes.textContent = `${parts.map(([name, n]) => `${n} ${words[name] || name}`).join(", ")}. Devices: ${counts.join(", ")}.`;
}

// In a pool of more nodes than this, those that hold no replica in the whole run are
// folded away.
const manyNodes = 16;

function makeNode(i) {
  const node = fleet.nodes[i];
  const slots = el("div", { class: "slots", style: `--n:${node.devices}` });
  const view = el("div", { class: "node", role: "img", style: `--n:${node.devices}` }, el("div", { title: node.name }, node.name), slots);
  fleet.views.push({ index: i, node, slots, view, shown: null });
  return view;
}

// idleNodes says what is folded away.
function idleNodes(members) {
  const idle = members.filter((i) => fleet.own[i].length === 0).map((i) => fleet.nodes[i]);
  const others = idle.reduce((sum, node) => sum + (node.others || 0), 0);
  const free = idle.reduce((sum, node) => sum + node.devices, 0) - others;
  return `${idle.length} nodes hold none of these replicas in this run: ${free} devices free${others ? `, ${others} with other work` : ""}`;
}

// manyVariants is how many variants a legend can name.
const manyVariants = 12;

function makeLegend() {
  const c = course();
  const others = fleet.nodes.some((n) => n.others);
  // Of many variants those of the chosen model are named.
  const named = c.variants.map((v, i) => i).filter((i) => c.variants.length <= manyVariants || c.variants[i].model === state.model);
  const items = named.map((i) => [c.variants[i], i]).map(([v, i]) => el("span", null, el("i", { class: "chip", style: `--c:${color(i)};margin:0;font-style:normal` }, letter(i)), v.name));
  const kind = (name, text) => el("span", null, el("i", { class: `slot ${name}`, style: "--c:var(--soft)" }), text);
  byId("legend").replaceChildren(...items, kind("serving", "serving"), kind("starting", "starting"), kind("leaving", "leaving"), kind("", "free"),
    ...(others ? [kind("other", "other work")] : []));
}

// showNodes draws the nodes at the chosen time; one that looks as before is left alone.
function showNodes() {
  const c = course();
  const here = fleet.own.map((list) => {
    const now = [];
    for (const held of list) {
      const stage = stageOf(held.life, state.t);
      if (stage) now.push({ ...held, stage });
    }
    return now;
  });
  for (const view of fleet.views) {
    const look = here[view.index].map((held) => `${held.life[lifeVariant]},${held.life[lifeName]},${held.stage}`).join(";") + (view.node.others || 0);
    if (look !== view.shown) drawNode(view, here[view.index], c.variants);
    view.shown = look;
  }
  for (const pool of fleet.pools) {
    const { accelerator, members, heading } = pool;
    const total = members.reduce((sum, i) => sum + fleet.nodes[i].devices, 0);
    const busy = members.reduce((sum, i) => sum + here[i].reduce((n, held) => n + held.spots.length, fleet.nodes[i].others || 0), 0);
    heading.replaceChildren(el("b", null, accelerator || "devices"),
      ` ${members.length} ${members.length === 1 ? "node" : "nodes"}, ${total - busy} of ${total} devices free`);
    if (pool.bar) showCrowd(pool, here);
  }
  showWaiting(c);
}

function drawNode(view, here, variants) {
  const cells = [];
  const at = (spot, span) => `grid-column:${spot + 1} / span ${span};grid-row:1`;
  const taken = new Set();
  const others = Math.min(view.node.others || 0, view.node.devices);
  for (let i = 0; i < others; i++) {
    taken.add(i);
    cells.push(el("span", { class: "slot other", style: at(i, 1), title: "other work" }));
  }
  for (const held of here) {
    const v = held.life[lifeVariant];
    const title = `${variants[v].name} ${held.life[lifeName]}, ${held.stage}`;
    for (const [first, span] of stretches(held.spots)) {
      const tight = span === 1 && letter(v).length > 2 ? " tight" : "";
      cells.push(el("span", { class: `slot ${held.stage}${tight}`, style: `--c:${color(v)};${at(first, span)}`, title }, letter(v)));
    }
    for (const spot of held.spots) taken.add(spot);
  }
  for (let i = 0; i < view.node.devices; i++) {
    if (!taken.has(i)) cells.push(el("span", { class: "slot", style: at(i, 1) }));
  }
  view.slots.replaceChildren(...cells);
  const said = here.map((held) => `${variants[held.life[lifeVariant]].name} ${held.stage}`);
  if (others) said.push(`${others} with other work`);
  view.view.setAttribute("aria-label", `${view.node.name}, ${view.node.devices} ${view.node.accelerator}: ${said.join(", ") || "free"}`);
}

// stretches are the runs of neighbouring devices as [first, length].
function stretches(spots) {
  const out = [];
  for (const spot of spots) {
    const end = out[out.length - 1];
    if (end && end[0] + end[1] === spot) end[1]++;
    else out.push([spot, 1]);
  }
  return out;
}

// showWaiting lists the replicas that were asked for and that no node holds.
function showWaiting(c) {
  const counts = new Map();
  for (const life of fleet.waiting) {
    if (life[lifeCreated] > state.t || state.t >= goneAt(life)) continue;
    if (life[lifeLeaving] >= 0 && state.t >= life[lifeLeaving]) continue;
    if (life[lifePlaced] >= 0 && state.t >= life[lifePlaced]) continue;
    counts.set(life[lifeVariant], (counts.get(life[lifeVariant]) || 0) + 1);
  }
  const parts = [...counts].sort((a, b) => a[0] - b[0]).map(([v, n]) =>
    el("span", { class: "slot waiting", style: `--c:${color(v)}`, title: c.variants[v].name }, `${letter(v)} x ${n}`));
  fleet.list.replaceChildren(parts.length ? "Waiting for a node:" : "No replica waits for a node.", ...parts);
}
