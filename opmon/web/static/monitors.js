// Shows only the monitors whose name or status holds what is typed.

const wanted = document.getElementById("wanted");
if (wanted) {
  const rows = [...document.querySelectorAll("#monitors tbody tr")];
  const shown = document.getElementById("shown");
  const filter = () => {
    const words = wanted.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => row.dataset.text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = words.length ? `${count} of ${rows.length} shown` : "";
  };
  wanted.addEventListener("input", filter);
  document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
  filter();
}
