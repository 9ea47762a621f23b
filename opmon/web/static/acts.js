// Taking events on, and sending them again, with what is refused told beside the button.
import { Api } from "./api.js";
import { signInLink } from "./signing.js";

const events = document.getElementById("events");
if (events) {
  const api = new Api(events.dataset.csrf, events.dataset.name);
  events.addEventListener("submit", async (sent) => {
    sent.preventDefault();
    const form = sent.target;
    const button = sent.submitter ?? form.querySelector("button");
    const note = form.elements.note?.value.trim();
    const body = button.value === "acknowledge" && note ? { note } : {};
    form.querySelector(".said")?.remove();
    button.disabled = true;
    try {
      const done = await api.post(`/events/${encodeURIComponent(form.dataset.event)}/${button.value}`, body);
      if (done.new === false && done.by !== api.name) return tell(form, `${done.by} took it on before you; what you wrote was not kept. `, reload());
      location.reload();
    } catch (error) {
      if (error.isSignedOut) tell(form, "You are signed out; what you wrote stays here. ", signInLink("Sign in in another tab", true), ", then press again.");
      else tell(form, `It was not done: ${error.message}.`);
      button.disabled = false;
    }
  });
}

function tell(form, ...words) {
  const said = Object.assign(document.createElement("p"), { className: "said" });
  said.setAttribute("role", "alert");
  form.append(said);
  said.append(...words);
}

function reload() {
  return Object.assign(document.createElement("a"), { href: location.href.split("#")[0], textContent: "See who has it." });
}
