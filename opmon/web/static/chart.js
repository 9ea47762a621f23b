// Tells of the round that is pointed at; a click or Enter opens it.

const figure = document.getElementById("history");
if (figure) {
  const readout = figure.querySelector(".readout");
  const hint = readout.textContent;
  let chosen = null;

  const chart = () => [...figure.querySelectorAll("svg.chart")].find((svg) => svg.getBoundingClientRect().width > 0);
  const points = () => [...chart().querySelectorAll(".point[data-x]")];

  function choose(point) {
    chosen?.classList.remove("chosen");
    chosen = point;
    point?.classList.add("chosen");
    if (!point) {
      readout.textContent = hint;
      return;
    }
    const at = new Date(point.dataset.at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    readout.textContent = `${point.querySelector("title").textContent}; ${at}`;
  }

  function nearest(event) {
    const svg = chart();
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    return points().reduce((best, each) =>
      Math.abs(each.dataset.x - x) < Math.abs(best.dataset.x - x) ? each : best);
  }

  const open = (point) => point?.dataset.href && location.assign(point.dataset.href);

  figure.addEventListener("pointermove", (event) => event.target.closest("svg.chart") && choose(nearest(event)));
  figure.addEventListener("pointerleave", () => choose(null));
  figure.addEventListener("click", (event) => event.target.closest("svg.chart") && open(nearest(event)));
  figure.addEventListener("keydown", (event) => {
    const all = points();
    const place = all.indexOf(chosen);
    const moves = { ArrowLeft: place < 0 ? all.length - 1 : place - 1, ArrowRight: place + 1, Home: 0, End: all.length - 1 };
    if (event.key in moves) {
      choose(all[Math.min(Math.max(moves[event.key], 0), all.length - 1)]);
      event.preventDefault();
    } else if (event.key === "Enter") {
      open(chosen);
    }
  });
}
