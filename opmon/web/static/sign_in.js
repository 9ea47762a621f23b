import { ROOT } from "./root.js";

// A link that somebody was invited with carries the token behind #, which browsers send to no server.
const form = document.getElementById("sign-in");
const token = decodeURIComponent(location.hash.slice(1));
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
}
const field = form.querySelector("#token");
if (token && field) {
  field.value = token;
  form.requestSubmit();
} else {
  // Browsers leave the session's cookie out where a link on another site led here: ask whether there is one.
  const next = ROOT + form.elements.namedItem("next").value;
  const answer = await fetch(next, { redirect: "manual" });
  if (answer.ok) location.replace(next);
}
