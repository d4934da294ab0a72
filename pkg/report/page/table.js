
// Tables of many rows scroll in themselves and have a field to search in.

// manyRows is from how many rows on a table is searched in.
const manyRows = 12;

// makeSearch prepares the tables of a page whose rows come and go.
function makeSearch(table) {
  const section = table.closest("section");
  if (!live || !section) return;
  for (const row of table.tBodies[0].rows) makeModelButton(row);
  const count = el("output");
  const field = el("input", { type: "search", "aria-label": `Search in ${section.querySelector("h2").textContent}`, placeholder: "Search", oninput: () => search(section) });
  section.querySelector("h2").after(el("div", { class: "search", hidden: "hidden" }, field, count));
  search(section);
}

// search hides the rows that have none of the words.
function search(section) {
  const bar = section.querySelector(".search");
  if (!bar) return;
  const rows = [...section.querySelector("tbody").rows];
  const many = rows.length > manyRows;
  bar.hidden = !many;
  section.querySelector(".scroll").classList.toggle("tall", many);
  const words = many ? bar.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean) : [];
  let shown = 0;
  for (const row of rows) {
    const text = words.length > 0 ? row.textContent.toLowerCase() : "";
    const hidden = !words.every((word) => text.includes(word));
    if (row.hidden !== hidden) row.hidden = hidden;
    if (!hidden) shown++;
  }
  bar.querySelector("output").textContent = words.length > 0 ? `${shown} of ${rows.length}` : String(rows.length);
}

// makeModelButton makes the first cell of a row select the model that the row is about.
function makeModelButton(row) {
  if (row.dataset.model === undefined) return;
  const cell = row.cells[0];
  if (cell.querySelector("button")) return;
  const text = cell.textContent;
  cell.replaceChildren(el("button", { type: "button", onclick: () => {
    chooseModel(Number(row.dataset.model));
    byId("run").scrollIntoView({ block: "start" });
  } }, text));
}
