// Answering with a class: by its key, by arrows and Enter, by touch; among many by typing a part of its name.

import { make } from "./dom.js";

const MOST = 60; // found classes that are listed
const RECENT = 8;

/** The form for classes that all have a key, or that are so many that they are searched for. */
export function classForm(classes, answer) {
  return classes.every((each) => each.key) || classes.length <= 12 ? new Grid(classes, answer) : new Search(classes, answer);
}

export class Grid {
  constructor(classes, answer) {
    this.buttons = classes.map((each) =>
      make(
        "button",
        { type: "button", class: "class", title: each.description ?? "", onclick: () => answer(each.name) },
        each.key && each.key !== each.name ? make("kbd", {}, each.key) : null,
        make("span", { class: "class-name", dir: "auto" }, each.name),
        each.description ? make("span", { class: "class-told", dir: "auto" }, each.description) : null,
      ),
    );
    this.keys = new Map(classes.filter((each) => each.key).map((each) => [each.key, each.name]));
    this.answer = answer;
    this.names = classes.map((each) => each.name);
    this.element = make("div", { class: "grid", role: "group", "aria-label": "Classes" }, ...this.buttons);
    this.element.dataset.many = classes.length > 12 ? "yes" : "no";
  }

  /** A new task; `given` is what was answered before, null where nothing was. */
  reset(given) {
    this.buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(this.names[place] === given)));
    if (this.element.contains(document.activeElement)) document.activeElement.blur();
  }

  /** Its keys are heard wherever the focus is. */
  ready() {}

  /** Whether a key was for this form. */
  press(event) {
    if (this.keys.has(event.key)) {
      this.answer(this.keys.get(event.key));
      return true;
    }
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.#across(), ArrowUp: -this.#across() }[event.key];
    if (!step) return false;
    const now = this.buttons.indexOf(document.activeElement);
    const marked = this.names.findIndex((_, place) => this.buttons[place].getAttribute("aria-pressed") === "true");
    const next = now < 0 ? Math.max(marked, 0) : now + step;
    this.buttons[Math.min(this.buttons.length - 1, Math.max(0, next))].focus();
    return true;
  }

  /** How many buttons stand side by side. */
  #across() {
    const first = this.buttons[0]?.offsetTop;
    const next = this.buttons.findIndex((button) => button.offsetTop !== first);
    return next < 0 ? 1 : next;
  }
}

class Search {
  constructor(classes, answer) {
    this.classes = classes.map((each) => ({ ...each, plain: plain(each.name), told: plain(each.description ?? "") }));
    this.answer = answer;
    this.recent = [];
    this.field = make("input", {
      type: "text", id: "search", autocomplete: "off", spellcheck: false, placeholder: `Search ${classes.length.toLocaleString("en")} classes`,
      role: "combobox", "aria-expanded": "true", "aria-controls": "found", "aria-label": "Search for a class", "aria-autocomplete": "list",
    });
    this.list = make("ul", { id: "found", class: "found", role: "listbox", "aria-label": "Classes" });
    this.more = make("p", { class: "quiet small", "aria-live": "polite" });
    this.element = make("div", { class: "search" }, this.field, this.list, this.more);
    this.field.addEventListener("input", () => this.#list());
  }

  reset(given) {
    this.given = given;
    this.field.value = "";
    this.#list();
    this.ready();
  }

  /** Stand ready for the keyboard; on a phone none pops up. */
  ready() {
    if (matchMedia("(hover: hover)").matches) this.field.focus({ preventScroll: true });
  }

  press(event) {
    const inField = document.activeElement === this.field;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") this.#mark(this.marked + (event.key === "ArrowDown" ? 1 : -1));
    else if (event.key === "Enter" && (inField || document.activeElement === document.body)) this.#choose(this.found[this.marked]);
    else if (event.key === "Escape" && inField) this.field.blur();
    else if (inField) return !(event.key === "Backspace" && !this.field.value); // typing; in an empty field it is undo
    else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !"sugzc".includes(event.key)) {
      this.field.focus();
      return "typing";
    } else return false;
    return event.key === "Escape" || event.key.startsWith("Arrow") || event.key === "Enter";
  }

  #choose(chosen) {
    if (!chosen) return;
    this.recent = [chosen.name, ...this.recent.filter((name) => name !== chosen.name)].slice(0, RECENT);
    this.answer(chosen.name);
  }

  #list() {
    const words = plain(this.field.value).split(/\s+/).filter(Boolean);
    const all = words.length ? ranked(this.classes, words) : this.#usual();
    this.found = all.slice(0, MOST);
    this.list.replaceChildren(
      ...this.found.map((each, place) =>
        make(
          "li",
          { id: `found-${place}`, role: "option", class: "found-one", onclick: () => this.#choose(each) },
          make("span", { class: "class-name", dir: "auto" }, each.name),
          each.description ? make("span", { class: "class-told", dir: "auto" }, each.description) : null,
        ),
      ),
    );
    const left = all.length - this.found.length;
    this.more.textContent = all.length ? (left ? `and ${left.toLocaleString("en")} more: type on` : "") : "no class is called so";
    this.#mark(Math.max(0, this.found.findIndex((each) => each.name === this.given)));
  }

  /** The last ones first. */
  #usual() {
    const last = this.recent.map((name) => this.classes.find((each) => each.name === name));
    return [...last, ...this.classes.filter((each) => !this.recent.includes(each.name))];
  }

  #mark(place) {
    this.marked = Math.min(this.found.length - 1, Math.max(0, place));
    [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === this.marked)));
    this.list.children[this.marked]?.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", this.found.length ? `found-${this.marked}` : "");
  }
}

const MARKS = /\p{Diacritic}/gu;

function plain(text) {
  return text.normalize("NFD").replace(MARKS, "").toLowerCase();
}

/** The classes that hold all the words: those that begin with them first, those that only their description has last. */
function ranked(classes, words) {
  const text = words.join(" ");
  const rank = ({ plain: name, told }) => {
    if (name === text) return 0;
    if (name.startsWith(text)) return 1;
    if (words.every((word) => name.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word)))) return 2;
    if (words.every((word) => name.includes(word))) return 3;
    return words.every((word) => name.includes(word) || told.includes(word)) ? 4 : 9;
  };
  const found = classes.map((each, place) => ({ each, place, rank: rank(each) })).filter(({ rank }) => rank < 9);
  return found.sort((one, other) => one.rank - other.rank || one.place - other.place).map(({ each }) => each);
}
