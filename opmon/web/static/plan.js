// Plans again as soon as something else is asked.
import { localise } from "./moments.js";

const form = document.getElementById("plan");
const aim = document.getElementById("aim");
const told = document.getElementById("aim-told");
const WORDS = ["a narrow interval", "rather the interval", "both alike", "rather the failures", "finding failures"];
let asked = 0;
let timer;

function address() {
  const asking = new URLSearchParams(new FormData(form));
  return `${location.pathname}?${asking}`;
}

async function plan() {
  const own = ++asked;
  const path = address();
  const answer = await fetch(path).catch(() => null);
  if (own !== asked) return; // something else was asked since
  if (!answer?.ok) {
    form.submit(); // the server says what is wrong
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const result = document.getElementById("result");
  result.replaceChildren(...page.getElementById("result").childNodes);
  localise(result);
  history.replaceState(null, "", path);
}

const tell = () => { told.textContent = WORDS[Math.round(aim.value * 4)]; };
form.addEventListener("input", () => {
  tell();
  clearTimeout(timer);
  timer = setTimeout(plan, 250);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  plan();
});
tell();
