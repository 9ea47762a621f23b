// Answers that the server has not confirmed. They are kept in the browser until it has: a reload, a closed window or a
// lost connection loses none. Sent twice, by two tabs or after a lost confirmation, an answer counts once, for it
// carries the moment when it was given.
//
// Browsers keep one store for a host and port: several opmons below prefixes of it have a part each.

import { Failed, NO_ANSWER } from "./api.js";
import { ROOT } from "./root.js";

const MOST = 100;
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15_000;

export class Outbox {
  /** `tell(state)` hears of {waiting, failing, refused, stopped} whenever that changes. */
  constructor(api, name, tell) {
    this.api = api;
    this.tell = tell;
    this.prefix = `opmon${ROOT}/answers/${name}/`;
    this.former = `opmon/outbox/${name}/`; // where an earlier version kept them, for whichever opmon they were
    this.hasAskedForFormer = false;
    this.memory = new Map(); // where the browser keeps nothing
    this.given = 0; // answers that were put in
    this.wait = FIRST_WAIT;
    this.failing = null;
    this.stopped = null; // what nobody but a person can change
    this.sending = false;
    for (const back of ["online", "focus"]) addEventListener(back, () => this.#soon(0));
    addEventListener("beforeunload", (event) => {
      if (this.memory.size) event.preventDefault();
    });
  }

  /** Keep an answer, in the place of another one to the same task, and send it. */
  put(entry) {
    const text = JSON.stringify(entry);
    this.given += 1;
    try {
      localStorage.setItem(this.prefix + entry.key, text);
    } catch {
      this.memory.set(entry.key, text);
    }
    this.#changed();
    this.send();
  }

  keys() {
    return new Set(this.#entries().map((entry) => entry.key));
  }

  async send() {
    if (this.sending) return;
    this.sending = true;
    try {
      const locks = navigator.locks; // only where the connection is safe; without it two tabs may send the same
      if (locks) await locks.request(this.prefix, () => this.#sendAll());
      else await this.#sendAll();
    } finally {
      this.sending = false;
      this.#changed();
    }
  }

  async #sendAll() {
    for (;;) {
      const entries = this.#kept().slice(0, MOST);
      if (!entries.length && this.hasAskedForFormer) return;
      try {
        if (entries.length) await this.#post(entries);
        else await this.#postFormer();
        this.wait = FIRST_WAIT;
        this.failing = null;
        this.stopped = null;
      } catch (error) {
        this.failing = error.message;
        this.stopped = error.isSignedOut || error.isRefusal ? error : null;
        this.#changed();
        this.#soon(Math.max(this.wait, 1000 * (error.retryAfter ?? 0)));
        this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
        return;
      }
    }
  }

  async #post(entries) {
    const refused = await this.#refused(entries);
    for (const entry of entries) {
      this.#forget(entry);
      const why = refused[entry.key];
      if (why) this.tell({ ...this.#state(), refused: { entry, why } });
    }
  }

  /** Those that it does not take may be another opmon's, and stay for it. */
  async #postFormer() {
    const entries = this.#kept(this.former);
    for (let first = 0; first < entries.length; first += MOST) {
      const some = entries.slice(first, first + MOST);
      const refused = await this.#refused(some);
      some.filter((entry) => !(entry.key in refused)).forEach((entry) => this.#forget(entry, this.former));
    }
    this.hasAskedForFormer = true;
  }

  /**
   * Why the server will never take some of these, by key; all others are on its disk. They are sent at once, or, where
   * it cannot read them, one by one, so that a broken one holds up no other. What else fails is an error: who says 404
   * or 400 may be a proxy, for a moment, and says nothing of the answers.
   */
  async #refused(entries) {
    try {
      const told = await this.api.post("/answers", { answers: entries });
      if (!(told?.refused instanceof Object)) throw new Failed(0, NO_ANSWER);
      return told.refused;
    } catch (error) {
      if (!error.isUnreadable) throw error;
      if (entries.length === 1 && !error.isOwn) throw error;
      if (entries.length === 1) return { [entries[0].key]: error.message };
    }
    const refused = {};
    for (const entry of entries) Object.assign(refused, await this.#refused([entry]));
    return refused;
  }

  #soon(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), milliseconds);
  }

  /** What may wait for this server. */
  #entries() {
    return this.hasAskedForFormer ? this.#kept() : [...this.#kept(this.former), ...this.#kept()];
  }

  #kept(prefix = this.prefix) {
    const texts = prefix === this.prefix ? [...this.memory.values()] : [];
    try {
      for (let place = 0; place < localStorage.length; place++) {
        const name = localStorage.key(place);
        const isOne = name.startsWith(prefix) && !name.slice(prefix.length).includes("/"); // else of a longer prefix
        if (isOne) texts.push(localStorage.getItem(name));
      }
    } catch {
      // the browser keeps nothing: what there is is in memory
    }
    const entries = texts.map(parsed).filter((entry) => entry !== null);
    return entries.sort((one, other) => (one.at < other.at ? -1 : 1));
  }

  /** A confirmed answer, unless another one to the same task has taken its place meanwhile. */
  #forget(entry, prefix = this.prefix) {
    const isIt = (text) => text !== null && parsed(text)?.at === entry.at;
    if (isIt(this.memory.get(entry.key) ?? null)) this.memory.delete(entry.key);
    try {
      const name = prefix + entry.key;
      if (isIt(localStorage.getItem(name))) localStorage.removeItem(name);
    } catch {
      // as above
    }
  }

  #state() {
    return { waiting: this.#entries().length, failing: this.failing, stopped: this.stopped, refused: null };
  }

  #changed() {
    this.tell(this.#state());
  }
}

function parsed(text) {
  try {
    const entry = JSON.parse(text);
    return entry && typeof entry.key === "string" && typeof entry.at === "string" ? entry : null;
  } catch {
    return null;
  }
}
