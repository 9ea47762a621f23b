// Taking events on, and sending them again.
import { Api } from "./api.js";

const events = document.getElementById("events");
if (events) {
  const api = new Api(events.dataset.csrf);
  events.addEventListener("click", async (click) => {
    const button = click.target.closest("button[data-act]");
    if (!button) return;
    const box = button.closest("[data-event]");
    const note = box.querySelector("input")?.value.trim();
    const body = button.dataset.act === "acknowledge" && note ? { note } : {};
    box.querySelector(".said")?.remove();
    button.disabled = true;
    try {
      await api.post(`/events/${encodeURIComponent(box.dataset.event)}/${button.dataset.act}`, body);
      location.reload();
    } catch (error) {
      const said = Object.assign(document.createElement("p"), { className: "said", textContent: error.message });
      said.setAttribute("role", "alert");
      box.append(said);
      button.disabled = false;
    }
  });
}
