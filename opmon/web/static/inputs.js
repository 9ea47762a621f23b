// What is to be judged beside pictures: text, and values by name.

import { byId, make, show, shortened } from "./dom.js";

const LONGEST = 20_000; // signs of an output in JSON
const MOMENT = { dateStyle: "medium", timeStyle: "medium" };
const MOST = 400; // numbers of a list that are shown

export function showInputs(task) {
  const asked = task.fields.filter((field) => !field.is_output);
  const texts = asked.filter((field) => field.kind === "text");
  const values = asked.filter((field) => field.kind === "value");
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
  const alone = values.length === asked.length;
  byId("values").replaceChildren(make("table", { class: alone ? "alone" : "" }, make("tbody", {}, ...rows)));
  show(byId("values"), rows.length > 0);
  const output = task.fields.find((field) => field.is_output && field.kind !== "picture");
  byId("output-value").replaceChildren(...(output ? outputOf(output.value) : []));
  show(byId("output"), output !== undefined);
}

/** What the model gave, to be judged: text as it is, a list in its order, anything else as JSON. */
function outputOf(value) {
  if (value === null) return [make("p", { class: "quiet" }, "nothing")];
  if (typeof value === "string") return [value ? make("p", { dir: "auto" }, value) : make("p", { class: "quiet" }, "an empty text")];
  const isListed = Array.isArray(value) && value.length > 0 && value.every((each) => each === null || typeof each !== "object");
  if (isListed) {
    const more = value.length > MOST ? [make("p", { class: "quiet" }, `… and ${value.length - MOST} more`)] : [];
    return [make("ol", {}, ...value.slice(0, MOST).map((each) => make("li", { dir: "auto" }, String(each)))), ...more];
  }
  return [make("pre", { dir: "auto" }, shortened(JSON.stringify(value, null, 2), LONGEST))];
}

function valued(value) {
  if (value === null) return [make("span", { class: "quiet" }, "no value")];
  if (Array.isArray(value)) {
    const more = value.length > MOST ? ` … and ${value.length - MOST} more` : "";
    return [make("span", { class: "list" }, value.slice(0, MOST).map(plain).join(", ") + more)];
  }
  const moment = momentOf(value);
  if (moment) return [make("time", { dateTime: value, title: value }, moment.toLocaleString([], MOMENT))];
  return [make("span", { class: typeof value === "number" ? "number" : "" }, plain(value))];
}

/** The moment that a text with its zone says, which readers are told in their own; null where it says none. */
function momentOf(value) {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*(Z|[+-]\d\d:?\d\d)$/.test(value)) return null;
  const moment = new Date(value);
  return Number.isNaN(moment.getTime()) ? null : moment;
}

function plain(value) {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7)));
  return shortened(JSON.stringify(value), 2000);
}
