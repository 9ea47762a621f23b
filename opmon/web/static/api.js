// The API as the page uses it.
import { Clock } from "./clock.js";
import { ROOT } from "./root.js";

export const NO_ANSWER = "opmon does not answer";

/** The server, or what lies before it, refused: `status` says how, `message` why. 0: there was no answer at all. */
export class Failed extends Error {
  constructor(status, message, retryAfter = 0, cause = undefined, isOwn = false) {
    super(message, { cause });
    this.status = status;
    this.isSignedOut = status === 401;
    this.retryAfter = retryAfter;
    this.isOwn = isOwn; // opmon itself says so, and not a proxy, or whatever has its address for a moment
  }

  /** Whether the server knows who asks and what it is asked, and does not let them. */
  get isRefusal() {
    return this.status === 403;
  }

  /** Whether it was too much, or nothing that can be read: less of it may do. */
  get isUnreadable() {
    return this.status === 413 || this.status === 422;
  }
}

export class Api {
  constructor(csrf, name) {
    this.csrf = csrf;
    this.name = name;
    this.clock = new Clock();
  }

  get(path) {
    return this.#ask("GET", path);
  }

  post(path, body) {
    return this.#ask("POST", path, JSON.stringify(body));
  }

  async #ask(method, path, body) {
    try {
      return await this.#askOnce(method, path, body);
    } catch (error) {
      if (error.status !== 403 || method === "GET" || !(await this.#takesOver())) throw error;
      return this.#askOnce(method, path, body);
    }
  }

  /** Whether the same person signed in anew, such as in another tab: this page goes on with that session. */
  async #takesOver() {
    const me = await this.#askOnce("GET", "/me").catch(() => null);
    if (!me?.csrf || me.csrf === this.csrf) return false;
    if (me.name !== this.name) throw new Failed(403, `this page is ${this.name}'s, and ${me.name} is signed in now`);
    this.csrf = me.csrf;
    return true;
  }

  async #askOnce(method, path, body) {
    let answer;
    const asked = Date.now();
    try {
      const headers = { accept: "application/json", "content-type": "application/json", "x-csrf-token": this.csrf };
      answer = await fetch(`${ROOT}/api/v1${path}`, { method, body, headers, signal: AbortSignal.timeout(20_000) });
    } catch (error) {
      throw new Failed(0, NO_ANSWER, 0, error);
    }
    this.clock.heard(answer.headers.get("opmon-now"), asked);
    let told = {};
    try {
      told = await answer.json();
    } catch (error) {
      if (answer.ok) throw new Failed(0, NO_ANSWER, 0, error); // the connection ended inside the answer
    }
    if (answer.ok) return told;
    if (answer.status === 401) throw new Failed(401, "you are signed out");
    const wait = Number(answer.headers.get("retry-after")) || 0;
    const isOwn = typeof told?.error === "string";
    throw new Failed(answer.status, isOwn ? told.error : `the server answered ${answer.status}`, wait, undefined, isOwn);
  }
}
