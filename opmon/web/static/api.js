// The API as the page uses it.
import { ROOT } from "./root.js";

/** The server, or what lies before it, refused: `status` says how, `message` why. 0: there was no answer at all. */
export class Failed extends Error {
  constructor(status, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Whether it is worth sending the same again. */
  get passes() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

export class Api {
  constructor(csrf) {
    this.csrf = csrf;
  }

  get(path) {
    return this.#ask("GET", path);
  }

  post(path, body) {
    return this.#ask("POST", path, JSON.stringify(body));
  }

  async #ask(method, path, body) {
    let answer;
    try {
      const headers = { accept: "application/json", "content-type": "application/json", "x-csrf-token": this.csrf };
      answer = await fetch(`${ROOT}/api/v1${path}`, { method, body, headers, signal: AbortSignal.timeout(20_000) });
    } catch (error) {
      throw new Failed(0, String(error));
    }
    let told = {};
    try {
      told = await answer.json();
    } catch (error) {
      if (answer.ok) throw new Failed(0, String(error)); // the connection ended inside the answer
    }
    if (answer.ok) return told;
    const wait = Number(answer.headers.get("retry-after")) || 0;
    throw new Failed(answer.status, told.error ?? `the server answered ${answer.status}`, wait);
  }
}
