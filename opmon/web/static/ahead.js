// The tasks that come next, loaded ahead with their pictures, so that the next one is there when a key is pressed.

const ENOUGH = 6; // what one has, nobody else is given for a while
const FEW = 4;
const MOST = 50;
const AGAIN = 2000;
const LATER = 20_000;

export class Ahead {
  /** `changed()` hears of new tasks and of why there are none; `progress(told)` of how far the labels are. */
  constructor(api, monitor, outbox, tabs, choices, changed, progress) {
    Object.assign(this, { api, monitor, outbox, tabs, choices, changed, progress });
    this.tasks = [];
    this.answered = new Set();
    this.state = "loading"; // or "ready", "empty", "elsewhere", "failing", "signed out", "refused"
    this.why = "";
    this.asking = null;
    this.current = null;
    addEventListener("online", () => this.fill());
    addEventListener("focus", () => ["signed out", "refused", "failing"].includes(this.state) && this.fill());
  }

  /** The next task, which is then the current one; null where there is none. */
  next() {
    this.current = this.tasks.shift() ?? null;
    this.#claim();
    if (this.tasks.length < FEW) this.fill();
    return this.current;
  }

  /** Put a task back in front, such as the current one while another one is corrected. */
  putBack(task) {
    if (!this.answered.has(task.key)) this.tasks.unshift(task);
  }

  /** Whichever tab answered it: it is not shown again. */
  isAnswered(key) {
    this.answered.add(key);
    this.tasks = this.tasks.filter((task) => task.key !== key);
    this.#claim();
  }

  fill() {
    this.asking ??= this.#ask().finally(() => {
      this.asking = null;
      this.changed();
    });
    return this.asking;
  }

  async #ask() {
    clearTimeout(this.timer);
    const elsewhere = this.tabs.claimed();
    const unsent = this.outbox.keys();
    const given = this.outbox.given;
    const own = this.tasks.length + (this.current ? 1 : 0);
    const count = Math.min(MOST, Math.max(own, ENOUGH) + elsewhere.size + unsent.size + 1);
    try {
      const told = await this.api.post(`/monitors/${encodeURIComponent(this.monitor)}/take`, { count });
      await this.choices.give(told.tasks, told.classes_mark);
      const has = new Set([...this.tasks.map((task) => task.key), this.current?.key]);
      const isSaid = (key) => this.answered.has(key) || unsent.has(key) || this.outbox.keys().has(key);
      const isNew = (task) => !has.has(task.key) && !isSaid(task.key);
      const fresh = told.tasks.filter(isNew);
      const taken = fresh.filter((task) => !elsewhere.has(task.key));
      taken.forEach(load);
      this.tasks.push(...taken.slice(0, Math.max(1, ENOUGH + 1 - own)));
      this.state = this.tasks.length ? "ready" : fresh.length ? "elsewhere" : "empty";
      this.isExact = unsent.size === 0 && given === this.outbox.given; // no answer was under way meanwhile
      if (this.isExact) this.progress(told.progress);
    } catch (error) {
      this.state = error.isSignedOut ? "signed out" : error.isRefusal ? "refused" : "failing";
      this.why = error.message;
    }
    this.#claim();
    const waits = { ready: 0, failing: AGAIN, elsewhere: AGAIN, empty: this.isExact ? LATER : AGAIN, "signed out": LATER, refused: LATER }[this.state];
    if (waits) this.timer = setTimeout(() => this.fill(), waits);
  }

  #claim() {
    this.tabs.claim([this.current, ...this.tasks].filter((task) => task !== null).map((task) => task.key));
  }
}

/** Begin to load a task's pictures; each waits decoded, so that showing it takes no time. */
export function load(task) {
  task.pictures ??= task.fields
    .filter((field) => field.kind === "picture")
    .map((field) => {
      const picture = new Image();
      picture.alt = `${field.name} of input ${task.input_id}`;
      picture.draggable = false;
      picture.src = field.url;
      picture.ready = picture.decode().catch(() => picture.classList.add("broken"));
      return picture;
    });
}
