// Skipping a task: with a reason, by one more key.

import { changed } from "./clicks.js";
import { byId, make } from "./dom.js";

const REASONS = ["I cannot tell", "It is broken or empty", "No answer fits", "More than one answer fits"];

export class Skipping {
  constructor(skip) {
    this.dialog = byId("skip-dialog");
    this.skip = skip;
    const buttons = REASONS.map((reason, place) =>
      make("button", { type: "button", onclick: () => this.#done(reason) }, make("kbd", {}, String(place + 1)), ` ${reason}`),
    );
    byId("skip-reasons").replaceChildren(...buttons);
    byId("skip-own").addEventListener("submit", (event) => {
      event.preventDefault();
      const words = byId("skip-words").value.trim();
      if (words) this.#done(words);
    });
  }

  open() {
    byId("skip-words").value = "";
    this.dialog.showModal();
    byId("skip-reasons").firstElementChild.focus();
    changed();
  }

  /** Keys while the question is asked. */
  press(event) {
    if (document.activeElement === byId("skip-words")) return;
    const reason = REASONS[Number(event.key) - 1];
    if (reason) {
      event.preventDefault();
      this.#done(reason);
    }
  }

  #done(reason) {
    this.dialog.close();
    this.skip(reason);
  }
}
