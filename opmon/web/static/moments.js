// Moments in the reader's own zone, as their language writes dates; the pages themselves say them in UTC.

const FULL = { dateStyle: "medium", timeStyle: "short" };
const DAY = { dateStyle: "medium" };
const TIME = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
const UNITS = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How far a moment is from now, such as "2 hours ago": in the language of the sentences around it. */
function ago(moment) {
  const seconds = (moment - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return relative.format(Math.round(seconds / size), unit);
}

const IN_WORDS = /\b(\d{4}-\d\d-\d\d|\d\d [A-Z][a-z]{2} \d{4},) (\d\d:\d\d(?::\d\d)?) UTC\b/g;

/** Sentences tell moments as "2026-11-12 23:50 UTC" or "12 Nov 2026, 23:50 UTC": these become elements of their own. */
function mark(within) {
  const walker = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (!text.parentElement?.closest("time, pre, code, textarea, script, .prose")) texts.push(text);
  }
  for (const text of texts) {
    for (const found of [...text.data.matchAll(IN_WORDS)].reverse()) {
      const moment = new Date(`${found[1].replace(",", "")} ${found[2]} UTC`);
      if (Number.isNaN(moment.getTime())) continue;
      const time = Object.assign(document.createElement("time"), { dateTime: moment.toISOString() });
      const told = text.splitText(found.index);
      told.splitText(found[0].length);
      time.textContent = told.data;
      told.replaceWith(time);
    }
  }
}

export function localise(within = document.body) {
  mark(within);
  for (const time of within.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const full = moment.toLocaleString([], FULL);
    const form = time.dataset.form;
    time.textContent = form === "ago" ? ago(moment) : form === "day" ? moment.toLocaleDateString([], DAY) : full;
    if (form) time.title = full;
  }
  for (const text of within.querySelectorAll("text[data-at]")) {
    const moment = new Date(text.dataset.at);
    text.textContent = text.dataset.form ? moment.toLocaleString([], TIME) : moment.toLocaleDateString([], DAY);
  }
}

localise();
