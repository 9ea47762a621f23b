// Answering with any number of classes, or none: keys and touch turn each on or off, Enter answers.

import { make } from "./dom.js";

const SEARCHED = 24; // more classes than these, or classes without keys, are found by a part of their names

export class Several {
  constructor(classes, answer) {
    this.answer = answer;
    this.classes = classes;
    this.chosen = new Set();
    this.buttons = classes.map((each) => this.#button(each));
    this.keys = new Map(classes.filter((each) => each.key).map((each) => [each.key, each.name]));
    this.field = classes.length > SEARCHED || this.keys.size < classes.length ? this.#search() : null;
    this.done = make("button", { class: "main-button", type: "submit" });
    const grid = make("div", { class: "grid several", role: "group", "aria-label": "Classes" }, ...this.buttons);
    grid.dataset.many = classes.length > 12 ? "yes" : "no";
    this.element = make("form", { class: "choosing", noValidate: true }, this.field, grid, this.done);
    this.element.addEventListener("submit", (event) => this.#submit(event));
  }

  /** A new task; `given` is the JSON list that was answered before, null where nothing was. */
  reset(given) {
    this.chosen = new Set(given ? JSON.parse(given) : []);
    if (this.field) this.field.value = "";
    this.#find();
    this.#tell();
    if (this.element.contains(document.activeElement)) document.activeElement.blur();
  }

  ready() {}

  press(event) {
    const inField = this.field && document.activeElement === this.field;
    if (inField) return this.#pressInField(event);
    if (this.keys.has(event.key)) return this.#toggle(this.keys.get(event.key)), true;
    if (event.key === "Enter" && !this.element.contains(document.activeElement)) return this.#submit(event), true;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) return this.#go(step), true;
    if (event.key === "/" && this.field) {
      event.preventDefault();
      return this.field.focus(), true;
    }
    return event.key === "Enter" || event.key === " " ? "typing" : false;
  }

  /** In the field Enter turns on what is found first, and answers where nothing is written. */
  #pressInField(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      if (!this.field.value) return this.#submit(event), true;
      const first = this.buttons.find((button) => !button.hidden);
      if (first) first.click();
      this.field.value = "";
      this.#find();
      return "typing";
    }
    if (event.key === "Escape") return this.field.blur(), true;
    return !(event.key === "Backspace" && !this.field.value) && "typing";
  }

  #button(each) {
    const key = each.key && each.key !== each.name ? make("kbd", {}, each.key) : null;
    const name = make("span", { class: "class-name", dir: "auto" }, each.name);
    const told = each.description ? make("span", { class: "class-told", dir: "auto" }, each.description) : null;
    const onclick = () => this.#toggle(each.name);
    return make("button", { type: "button", class: "class", title: each.description ?? "", onclick, "aria-pressed": "false" }, key, name, told);
  }

  #search() {
    const field = make("input", {
      type: "text", id: "search", autocomplete: "off", spellcheck: false, "aria-label": "Search for a class",
      placeholder: `Search ${this.classes.length.toLocaleString("en")} classes (/)`,
    });
    field.addEventListener("input", () => this.#find());
    return field;
  }

  /** Those that are chosen are always seen. */
  #find() {
    const words = plain(this.field?.value ?? "").split(/\s+/).filter(Boolean);
    this.classes.forEach((each, place) => {
      const fits = words.every((word) => plain(each.name).includes(word));
      this.buttons[place].hidden = !(fits || (!words.length && this.chosen.has(each.name)));
    });
  }

  #toggle(name) {
    if (!this.chosen.delete(name)) this.chosen.add(name);
    this.#tell();
  }

  #tell() {
    this.buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(this.chosen.has(this.classes[place].name))));
    const count = this.chosen.size;
    this.done.replaceChildren(count ? `Answer with ${count === 1 ? "this one" : `these ${count}`} ` : "None of them ", make("kbd", {}, "Enter"));
  }

  #go(step) {
    const seen = this.buttons.filter((button) => !button.hidden);
    const now = seen.indexOf(document.activeElement);
    seen[Math.min(seen.length - 1, Math.max(0, now < 0 ? 0 : now + step))]?.focus();
  }

  #submit(event) {
    event.preventDefault();
    this.answer(JSON.stringify(this.classes.map((each) => each.name).filter((name) => this.chosen.has(name)).sort()));
  }
}

const MARKS = /\p{Diacritic}/gu;

function plain(text) {
  return text.normalize("NFD").replace(MARKS, "").toLowerCase();
}
