// Answers that are written: a number with its unit, a score, or the name of a class where the classes are not known.

import { make } from "./dom.js";

export class Written {
  constructor(form, unit, answer) {
    this.isScore = form === "score";
    this.isNumber = form === "number" || this.isScore;
    this.answer = answer;
    this.field = make("input", {
      type: "text", id: "written", autocomplete: "off", spellcheck: false, maxLength: 4000,
      inputMode: this.isNumber ? "decimal" : "text", "aria-describedby": "written-problem",
    });
    this.problem = make("p", { id: "written-problem", class: "problem", role: "alert", hidden: true });
    const label = make("label", { for: "written" }, this.isScore ? "Or exactly" : this.isNumber ? "The number" : "The class");
    const behind = unit ? make("span", { class: "unit" }, unit) : null;
    const button = make("button", { class: "main-button" }, "Answer ", make("kbd", {}, "Enter"));
    const line = make("div", { class: "line" }, this.field, behind, button);
    this.element = make("form", { class: "written", noValidate: true }, label, line, this.problem);
    this.element.addEventListener("submit", (event) => this.#submit(event));
    this.field.addEventListener("input", () => (this.problem.hidden = true));
  }

  reset(given) {
    this.field.value = given ?? "";
    this.problem.hidden = true;
    this.ready();
    if (given) this.field.select();
  }

  /** Stand ready for the keyboard; on a phone none pops up. */
  ready() {
    if (matchMedia("(hover: hover)").matches) this.field.focus({ preventScroll: true });
  }

  /** In a number's field letters are commands; in one for text they are text. What is written goes into the field. */
  press(event) {
    if (document.activeElement !== this.field) {
      const begins = this.isNumber ? /^[\d.,+\-−]$/.test(event.key) : event.key.length === 1 && !"sugzc ".includes(event.key);
      if (begins) this.field.focus({ preventScroll: true });
      return begins && "typing";
    }
    if (event.key === "Enter") return "typing";
    if (event.key === "Escape") {
      this.field.blur();
      return true;
    }
    if (event.key === "Backspace") return this.field.value !== "" && "typing";
    return !(this.isNumber && /^[sugzc]$/.test(event.key)) && "typing";
  }

  #submit(event) {
    event.preventDefault();
    const text = this.field.value.trim();
    const wrong = this.isScore ? problemOfScore(text) : this.isNumber ? problemOf(text) : text ? null : "write the class";
    this.problem.textContent = wrong ?? "";
    this.problem.hidden = wrong === null;
    if (wrong === null) this.answer(this.isNumber ? text.replace(",", ".").replace("−", "-") : text);
  }
}

/** Why a text is no score from 0 to 1; null where it is one. */
function problemOfScore(text) {
  const wrong = problemOf(text);
  if (wrong !== null) return wrong;
  const score = Number(text.replace(",", ".").replace("−", "-"));
  return score >= 0 && score <= 1 ? null : `${text} is not between 0 and 1`;
}

/** Why a text is no number; null where it is one. */
export function problemOf(text) {
  if (text === "") return "write a number, such as 3.5";
  if (/^[+\-−]?\d{1,3}(,\d{3})+$/.test(text)) return `${text} may mean two things: write it without the comma`;
  const isOne = /^[+\-−]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d{1,3})?$/i.test(text);
  return isOne && Number.isFinite(Number(text.replace(",", ".").replace("−", "-"))) ? null : `${text} is no number: write it as 3.5`;
}
