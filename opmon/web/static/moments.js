// Moments in the reader's own zone and words; the pages themselves say them in UTC.

const FULL = { dateStyle: "medium", timeStyle: "short" };
const DAY = { dateStyle: "medium" };
const UNITS = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]];
const relative = new Intl.RelativeTimeFormat([], { numeric: "auto" });

/** How far a moment is from now, such as "2 hours ago". */
function ago(moment) {
  const seconds = (moment - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return relative.format(Math.round(seconds / size), unit);
}

export function localise(within = document) {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const full = moment.toLocaleString([], FULL);
    const form = time.dataset.form;
    time.textContent = form === "ago" ? ago(moment) : form === "day" ? moment.toLocaleDateString([], DAY) : full;
    if (form) time.title = full;
  }
  for (const text of within.querySelectorAll("text[data-at]")) {
    text.textContent = new Date(text.dataset.at).toLocaleDateString([], DAY);
  }
}

localise();
