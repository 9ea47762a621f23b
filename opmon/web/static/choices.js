// What may be answered of a task: the classes of its own round's model, or, where these are the usual ones, the monitor's.
// While a page is open a model with other classes may come: what the server then gives has another mark.

import { Failed } from "./api.js";

export class Choices {
  constructor(api, guide) {
    Object.assign(this, { api, monitor: guide.name, usual: guide.classes, mark: guide.classes_mark });
  }

  /** Tell each of some tasks, which the server gave with this mark, what may be answered. */
  async give(tasks, mark) {
    if (mark !== this.mark) await this.#renew(mark);
    for (const task of tasks) task.choices = task.classes === null ? this.usual : own(task.classes);
  }

  async #renew(mark) {
    const guide = await this.api.get(`/monitors/${encodeURIComponent(this.monitor)}`);
    if (guide.classes_mark !== mark) throw new Failed(0, "the classes change at this moment"); // it is asked again
    Object.assign(this, { usual: guide.classes, mark });
  }
}

function own(classes) {
  return classes.map((name, place) => ({ name, key: keyOf(classes, place) }));
}

function keyOf(classes, place) {
  const single = classes.every((name) => /^[0-9a-z]$/.test(name));
  if (single) return classes[place];
  return classes.length <= 10 ? "1234567890"[place] : null;
}
