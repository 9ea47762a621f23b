// What is to be judged beside pictures: text, and values by name.

import { byId, make, show, shortened } from "./dom.js";

const MOST = 400; // numbers of a list that are shown

export function showInputs(task) {
  const texts = task.fields.filter((field) => field.kind === "text");
  const values = task.fields.filter((field) => field.kind === "value");
  const several = task.fields.length > 1;
  byId("texts").replaceChildren(
    ...texts.map((field) =>
      make("article", { class: "text" }, several ? make("h2", {}, field.name) : null, make("p", { dir: "auto" }, field.value)),
    ),
  );
  show(byId("texts"), texts.length > 0);
  const rows = values.map((field) =>
    make("tr", {}, make("th", { scope: "row" }, field.name), make("td", { dir: "auto" }, ...valued(field.value))),
  );
  const alone = values.length === task.fields.length;
  byId("values").replaceChildren(make("table", { class: alone ? "alone" : "" }, make("tbody", {}, ...rows)));
  show(byId("values"), rows.length > 0);
}

function valued(value) {
  if (value === null) return [make("span", { class: "quiet" }, "no value")];
  if (Array.isArray(value)) {
    const more = value.length > MOST ? ` … and ${value.length - MOST} more` : "";
    return [make("span", { class: "list" }, value.slice(0, MOST).map(plain).join(", ") + more)];
  }
  return [make("span", { class: typeof value === "number" ? "number" : "" }, plain(value))];
}

function plain(value) {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7)));
  return shortened(JSON.stringify(value), 2000);
}
