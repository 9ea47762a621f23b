// Saying how good an output is: pass or fail, stars, or a score from 0 to 1.

import { Grid } from "./classes.js";
import { make } from "./dom.js";
import { Written } from "./written.js";

const KEYS = { p: "pass", y: "pass", f: "fail", n: "fail" };

/** The form for outputs that are judged on this scale. */
export function judgingForm(scale, answer) {
  return new { pass_fail: PassFail, stars: Stars, score: Score }[scale](answer);
}

class PassFail extends Grid {
  constructor(answer) {
    super([{ name: "pass", key: "p" }, { name: "fail", key: "f" }], answer);
    this.element.classList.add("verdict");
    this.buttons.forEach((button, place) => (button.dataset.verdict = this.names[place]));
    for (const [key, name] of Object.entries(KEYS)) this.keys.set(key, name);
  }
}

class Stars extends Grid {
  constructor(answer) {
    super(["1", "2", "3", "4", "5"].map((name) => ({ name, key: name })), answer);
    this.element.classList.add("stars");
    this.buttons.forEach((button, place) => {
      const told = place === 0 ? "1 star, the worst" : place === 4 ? "5 stars, the best" : `${place + 1} stars`;
      button.setAttribute("aria-label", told);
      button.replaceChildren(make("kbd", {}, String(place + 1)), make("span", { class: "class-name" }, "★".repeat(place + 1)));
    });
  }

  reset(given) {
    super.reset(given?.[0] ?? null); // what is kept says "4 of 5"
  }
}

class Score {
  constructor(answer) {
    const tenths = Array.from({ length: 11 }, (_, tenth) => ({ name: String(tenth / 10), key: tenth < 10 ? String(tenth) : "p" }));
    this.grid = new Grid(tenths, answer);
    this.grid.keys.set("f", "0");
    this.grid.element.classList.add("scores");
    this.written = new Written("score", null, answer);
    this.element = make("div", { class: "score" }, this.grid.element, this.written.element);
  }

  get field() {
    return this.written.field;
  }

  reset(given) {
    const isTenth = this.grid.names.includes(given);
    this.grid.reset(given);
    this.written.reset(isTenth ? null : given);
    this.ready();
  }

  /** Its digits are heard wherever the focus is, but in the field. */
  ready() {
    if (document.activeElement === this.field) this.field.blur();
  }

  /** Digits are tenths; a point begins any other score. */
  press(event) {
    if (document.activeElement === this.field || event.key === "." || event.key === ",") return this.written.press(event);
    return this.grid.press(event);
  }
}
