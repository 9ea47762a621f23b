// Taking events on, and sending them again, with what is refused told beside the button.
import { Api } from "./api.js";

const events = document.getElementById("events");
if (events) {
  const api = new Api(events.dataset.csrf);
  events.addEventListener("submit", async (sent) => {
    sent.preventDefault();
    const form = sent.target;
    const button = sent.submitter ?? form.querySelector("button");
    const note = form.elements.note?.value.trim();
    const body = button.value === "acknowledge" && note ? { note } : {};
    form.querySelector(".said")?.remove();
    button.disabled = true;
    try {
      await api.post(`/events/${encodeURIComponent(form.dataset.event)}/${button.value}`, body);
      location.reload();
    } catch (error) {
      const said = Object.assign(document.createElement("p"), { className: "said", textContent: error.message });
      said.setAttribute("role", "alert");
      form.append(said);
      button.disabled = false;
    }
  });
}
