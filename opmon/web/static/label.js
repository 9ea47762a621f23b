// The labelling page: one task after the other.

import { Ahead, load } from "./ahead.js";
import { Api } from "./api.js";
import { Choices } from "./choices.js";
import { classForm } from "./classes.js";
import { changed } from "./clicks.js";
import { byId, counted, show } from "./dom.js";
import { showInputs } from "./inputs.js";
import { judgingForm } from "./judging.js";
import { Outbox } from "./outbox.js";
import { ROOT } from "./root.js";
import { Several } from "./several.js";
import { signInLink } from "./signing.js";
import { Skipping } from "./skipping.js";
import { Tabs } from "./tabs.js";
import { Viewer } from "./viewer.js";
import { Written } from "./written.js";

const LONGEST_SECONDS = 600; // a task that lay open for longer was left alone, not thought about
const LATELY = 20;
const OTHERS = "Others have the tasks that are left. What they leave comes by itself.";
const OTHER_CLASSES = "This task has other classes than the one before: check them, and their keys.";
const ELSEWHERE = "The tasks that are left were handed out: to others here, or to this monitor's label provider, such as a folder of files or another labelling tool. They are answered there.";

class Page {
  constructor({ me, guide }) {
    this.guide = guide;
    this.labels = me.role !== "viewer";
    this.api = new Api(me.csrf, me.name);
    this.outbox = new Outbox(this.api, me.name, (state) => this.#tellSaved(state));
    this.tabs = new Tabs(me.name, guide.name, (key) => this.#answeredElsewhere(key));
    this.choices = new Choices(this.api, guide);
    this.ahead = new Ahead(this.api, guide.name, this.outbox, this.tabs, this.choices, () => this.#more(), (told) => this.#progress(told));
    this.viewer = new Viewer();
    this.skipping = new Skipping((why) => this.answer(null, why));
    this.task = null;
    this.history = []; // what was said, the latest last
    this.corrects = null; // what is being corrected, and its place in the history
    this.pressedAt = null;
    this.#listen();
    this.#progress(guide.progress);
  }

  async begin() {
    if (!this.labels) return this.#rest("You may look, not label", "Ask whoever runs opmon for the role annotator.");
    this.outbox.send();
    this.#greet();
    await this.ahead.fill();
    await this.#remember();
  }

  /** Say what the task on the page is; null with a reason skips it. */
  answer(truth, why = null) {
    if (!this.task) return;
    const seconds = Math.min(LONGEST_SECONDS, Math.round((performance.now() - this.shownAt) / 10) / 100);
    const entry = { key: this.task.key, truth, skip: truth === null, why, seconds, at: this.api.clock.now().toISOString() };
    const said = { task: this.task, truth, why };
    const corrected = this.corrects;
    if (corrected !== null) this.history.splice(corrected.place, 0, said);
    else {
      this.history.push(said);
      this.done.mine += 1;
      this.done.open = Math.max(0, this.done.open - 1);
    }
    this.outbox.put(entry);
    this.ahead.isAnswered(this.task.key);
    this.tabs.tellAnswered(this.task.key);
    byId("told").textContent = truth === null ? "Skipped." : `Answered ${inWords(truth)}.`;
    this.#counts();
    this.#next();
  }

  undo() {
    const place = this.corrects === null ? this.history.length - 1 : this.corrects.place - 1;
    if (place < 0) return this.#tell("There is nothing before this that you answered lately.");
    if (this.corrects !== null) this.history.splice(this.corrects.place, 0, this.corrects.said);
    else if (this.task) this.ahead.putBack(this.task);
    const [said] = this.history.splice(place, 1);
    load(said.task);
    this.ahead.current = null;
    this.#show(said.task, { said, place });
  }

  /** Leave an earlier answer as it is. */
  #keep() {
    if (this.corrects === null) return false;
    this.history.splice(this.corrects.place, 0, this.corrects.said);
    this.#next();
    return true;
  }

  #next() {
    this.corrects = null;
    const task = this.ahead.next();
    if (task) this.#show(task, null);
    else this.#nothing();
  }

  #show(task, corrects) {
    this.task = task;
    this.corrects = corrects;
    load(task);
    byId("task").dataset.key = task.key;
    showInputs(task);
    show(byId("stage"), task.pictures.length > 0);
    this.viewer.show(task.pictures);
    this.#form(task);
    const given = corrects?.said.truth ?? null;
    show(byId("correcting"), corrects !== null);
    if (corrects) byId("correcting").textContent = `${past(corrects.said)} Answer again, or press Esc to leave it so.`;
    show(byId("prediction"), task.prediction !== null);
    byId("prediction").textContent = task.prediction === null ? "" : `The model's answer: ${task.prediction}`;
    for (const id of ["task", "answer"]) show(byId(id), true);
    show(byId("rest"), false);
    this.form.reset(given);
    byId("undo").disabled = this.history.length === 0;
    this.shownAt = performance.now();
    changed();
    this.#measure(task);
  }

  /** The form of the task, whose classes may be others than those of the one before. */
  #form(task) {
    const { choices } = task;
    const own = choices.map((each) => each.name).join("\0");
    if (this.formOf === own) return;
    if (this.formOf !== undefined) this.#tell(OTHER_CLASSES);
    const answer = (truth) => this.answer(truth);
    const { form, problem, unit } = this.guide;
    const listed = problem === "multilabel" ? (...all) => new Several(...all) : classForm;
    if (["pass_fail", "score", "stars"].includes(form)) this.form = judgingForm(form, answer);
    else this.form = form === "number" || !choices.length ? new Written(form, unit, answer) : listed(choices, answer);
    this.formOf = own;
    byId("form").replaceChildren(this.form.element);
  }

  #nothing() {
    this.task = null;
    const { state, why } = this.ahead;
    if (state === "ready" || this.ahead.asking) return this.#rest("Loading…", "");
    if (state === "elsewhere") return this.#rest("The last tasks are in another tab", "They are yours, and open there.");
    if (state === "signed out") return this.#rest("You are signed out", "Your answers are kept in this browser until you", true);
    if (state === "refused") return this.#rest("You are given no tasks", `${why}. Your answers are kept in this browser.`);
    if (state === "failing") return this.#rest("The next tasks do not come", `It is tried again (${why}). Your answers are kept.`);
    if (this.done.open > 0) return this.#rest("Nothing for you now", this.guide.has_provider ? ELSEWHERE : OTHERS);
    return this.#rest("All done", "Nothing waits for you here. New tasks appear by themselves.");
  }

  #rest(title, words, signIn = false) {
    for (const id of ["task", "answer"]) show(byId(id), false);
    show(byId("rest"), true);
    byId("rest-title").textContent = title;
    byId("rest-words").textContent = words;
    if (signIn) byId("rest-words").append(" ", signInLink("sign in again"), ".");
  }

  #more() {
    if (this.task !== null) return;
    if (this.ahead.tasks.length) this.#next();
    else this.#nothing();
  }

  async #remember() {
    try {
      const { said, classes_mark } = await this.api.get(`/monitors/${encodeURIComponent(this.guide.name)}/said?last=${LATELY}`);
      await this.choices.give(said.map(({ task }) => task), classes_mark);
      const known = new Set(this.history.map((each) => each.task.key));
      const unsent = this.outbox.keys();
      said.reverse();
      this.history.unshift(...said.filter(({ task }) => !known.has(task.key) && !unsent.has(task.key)));
      byId("undo").disabled = this.history.length === 0;
    } catch {
      // then only what is answered from here on can be undone
    }
  }

  #answeredElsewhere(key) {
    this.ahead.isAnswered(key);
    if (this.task?.key === key && this.corrects === null) {
      this.#tell("You answered this task in another tab.");
      this.#next();
    }
  }

  #tellSaved({ waiting, failing, stopped, refused }) {
    const saved = byId("saved");
    const state = waiting === 0 ? "saved" : failing ? "kept" : "saving";
    saved.dataset.state = state;
    const words = { saved: "all saved", saving: `saving ${waiting}…`, kept: `${counted(waiting, "answer")} not sent yet` };
    saved.textContent = words[state];
    saved.title = failing ? `They are kept in this browser and sent again by themselves. ${failing}` : "";
    this.#tellStopped(waiting ? stopped : null);
    if (refused) this.#tell(`An answer was not taken: ${refused.why}`);
  }

  /** Why no answer is taken until somebody does something; told once, and taken back when answers are taken again. */
  #tellStopped(why) {
    const words = why === null ? "" : why.isSignedOut ? "You are signed out" : `Your answers are not taken: ${why.message}`;
    if (words === this.stopped) return;
    const told = this.stopped;
    this.stopped = words;
    if (words) this.#tell(`${words}. What you answer is kept in this browser.`, why.isSignedOut ? signInLink() : "");
    else if (told) {
      show(byId("notice"), false);
      this.ahead.fill();
    }
  }

  #tell(words, ...more) {
    byId("notice-words").replaceChildren(words, " ", ...more);
    show(byId("notice"), true);
    clearTimeout(this.noticeTimer);
    if (!more.length) this.noticeTimer = setTimeout(() => show(byId("notice"), false), 8000);
  }

  #progress(told) {
    this.done = { ...told };
    this.#counts();
  }

  #counts() {
    const { open, mine } = this.done;
    byId("counts").textContent = `${mine.toLocaleString("en")} by you · ${open.toLocaleString("en")} to do`;
    byId("progress").max = Math.max(1, mine + open);
    byId("progress").value = mine;
  }

  /** The guide by itself, the first time that it says what it says. */
  #greet() {
    const { guidelines, name } = this.guide;
    if (!guidelines) return;
    const mark = `opmon${ROOT}/read/${name}`;
    try {
      if (localStorage.getItem(mark) === guidelines) return;
      localStorage.setItem(mark, guidelines);
    } catch {
      return;
    }
    byId("guide-dialog").showModal();
  }

  #listen() {
    byId("undo").addEventListener("click", () => this.undo());
    byId("skip").addEventListener("click", () => this.skipping.open());
    byId("guide").addEventListener("click", () => byId("guide-dialog").showModal());
    byId("guide-dialog").addEventListener("close", () => this.task && this.form.ready());
    byId("notice-close").addEventListener("click", () => show(byId("notice"), false));
    for (const close of document.querySelectorAll("dialog [data-close]"))
      close.addEventListener("click", () => close.closest("dialog").close());
    document.addEventListener("keydown", (event) => this.#press(event));
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (byId("skip-dialog").open) return this.skipping.press(event);
    if (byId("guide-dialog").open) return event.key === "g" && byId("guide-dialog").close();
    this.pressedAt = event.timeStamp;
    if (event.key === "Escape" && this.#keep()) return event.preventDefault();
    if (document.activeElement?.type === "range") return;
    if (this.task && !event.repeat) {
      const taken = this.form.press(event);
      if (taken === "typing") return;
      if (taken) return taken === true && handled(event, this.form);
    }
    const command = { u: () => this.undo(), Backspace: () => this.undo(), s: () => this.task && this.skipping.open(),
      z: () => this.viewer.zoomOn(), c: () => this.viewer.contrastOn(), g: () => byId("guide-dialog").showModal() }[event.key];
    if (!command || event.repeat) return;
    event.preventDefault();
    command();
  }

  /** How long it took from the key to the task on the screen, for whoever measures this page. */
  #measure(task) {
    const start = this.pressedAt;
    this.pressedAt = null;
    if (start === null) return;
    Promise.all(task.pictures.map((picture) => picture.ready)).then(() =>
      requestAnimationFrame(() => {
        const channel = new MessageChannel(); // its message comes after the frame is painted
        channel.port1.onmessage = () => {
          performance.measure("key to next task", { start, end: performance.now() });
          channel.port1.close();
        };
        channel.port2.postMessage(null);
      }),
    );
  }
}

/** Keys that a field of the form needs are left to it. */
function handled(event, form) {
  if (document.activeElement !== form.field || event.key.startsWith("Arrow") || event.key === "Enter") event.preventDefault();
}

function past({ truth, why }) {
  return truth === null ? `You skipped this${why ? ` (${why})` : ""}.` : `You answered ${inWords(truth)}.`;
}

/** Several classes are a list, which may be empty. */
function inWords(truth) {
  if (!truth.startsWith("[")) return truth;
  try {
    return JSON.parse(truth).join(", ") || "none of them";
  } catch {
    return truth;
  }
}

const page = new Page(JSON.parse(byId("main").dataset.begin));
await page.begin();
