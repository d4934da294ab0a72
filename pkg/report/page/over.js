
// Other policies can be laid over the charts of a run. They are known by their names, so that
// they stay when another start-up time is chosen.

const overColors = ["var(--v5)", "var(--v7)", "var(--v6)", "var(--v0)", "var(--v1)", "var(--v3)"];
const overDashes = ["none", "7 3", "2 3"];

// comparable are the other runs of the same scene and start-up time that have a course.
function comparable() {
  const own = current();
  return data.runs.filter((run) => run !== own && run.course && run.scene === own.scene && run.startup === own.startup);
}

// overStyle is how a policy that is laid over is drawn: by its place among those.
function overStyle(policy) {
  const i = [...state.over].indexOf(policy);
  return { color: overColors[i % overColors.length], dash: overDashes[Math.floor(i / overColors.length) % overDashes.length] };
}

// overlaid are the runs that are laid over, with their course of one model.
function overlaid(id) {
  return comparable().filter((run) => state.over.has(run.policy)).flatMap((run) => {
    const index = run.course.models.findIndex((m) => m.id === id);
    if (index < 0) return [];
    return [{ ...overStyle(run.policy), model: run.course.models[index], variants: run.course.variants.filter((v) => v.model === index) }];
  });
}

// makeOver draws the buttons that lay a policy over.
function makeOver() {
  const form = byId("over");
  const runs = comparable();
  form.hidden = runs.length === 0;
  const buttons = runs.map((run) => {
    const shown = state.over.has(run.policy);
    const style = overStyle(run.policy);
    const line = shown ? draw("svg", { class: "stroke", viewBox: "0 0 22 6", width: 22, height: 6, "aria-hidden": "true" },
      draw("line", { x1: 0, x2: 22, y1: 3, y2: 3, style: `stroke:${style.color};stroke-width:2.4;stroke-dasharray:${style.dash}` })) : null;
    return el("button", { type: "button", "aria-pressed": String(shown), onclick: () => {
      if (!state.over.delete(run.policy)) state.over.add(run.policy);
      makeOver();
      form.querySelectorAll("button")[runs.indexOf(run)].focus();
      makeCharts();
      saveAddress();
    } }, line, run.policy);
  });
  form.replaceChildren(el("span", { class: "key" }, "Lay over:"), ...buttons);
}
