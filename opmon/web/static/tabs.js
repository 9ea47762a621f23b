// Several tabs of one person: each says which tasks it shows, so that another one takes others, and which were answered.

import { ROOT } from "./root.js";

const EVERY = 2000;
const STALE = 9000;

export class Tabs {
  /** `answered(key)` hears of tasks that another tab answered. */
  constructor(name, monitor, answered) {
    this.prefix = `opmon${ROOT}/tab/${name}/${monitor}/`;
    this.own = this.prefix + crypto.getRandomValues(new Uint32Array(2)).join("-");
    this.keys = [];
    this.channel = new BroadcastChannel(`opmon${ROOT}/${name}/${monitor}`);
    this.channel.onmessage = (event) => answered(event.data);
    setInterval(() => this.#write(), EVERY);
    addEventListener("pagehide", () => this.#remove(this.own));
    addEventListener("pageshow", () => this.#write());
  }

  /** Say which tasks this tab has. */
  claim(keys) {
    this.keys = keys;
    this.#write();
  }

  tellAnswered(key) {
    this.channel.postMessage(key);
  }

  /** The tasks that other tabs have. */
  claimed() {
    const keys = new Set();
    try {
      for (const name of Object.keys(localStorage)) {
        if (!name.startsWith(this.prefix) || name === this.own) continue;
        const told = JSON.parse(localStorage.getItem(name) ?? "null");
        if (told && Date.now() - told.at < STALE) told.keys.forEach((key) => keys.add(key));
        else this.#remove(name);
      }
    } catch {
      // nothing is kept in this browser: two tabs may show the same task, and an answer in one takes it off the other
    }
    return keys;
  }

  #write() {
    try {
      localStorage.setItem(this.own, JSON.stringify({ keys: this.keys, at: Date.now() }));
    } catch {
      // as above
    }
  }

  #remove(name) {
    try {
      localStorage.removeItem(name);
    } catch {
      // as above
    }
  }
}
