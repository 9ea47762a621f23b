// Answers a question as soon as it is asked, without leaving the page.

const form = document.getElementById("ask");
let asked = 0;

async function ask(path) {
  const own = ++asked;
  const answer = await fetch(path).catch(() => null);
  if (own !== asked) return; // something else was asked since
  if (!answer?.ok) {
    location.assign(path); // the server says what is wrong
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ["answer", "maps"]) {
    document.getElementById(id)?.replaceChildren(...(page.getElementById(id)?.childNodes ?? []));
  }
  history.replaceState(null, "", path);
}

const address = (of) => `${location.pathname}?${new URLSearchParams(new FormData(of))}`;

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(address(form));
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-question]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    form.elements.q.value = link.dataset.question;
    ask(address(form));
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "three") return;
    event.preventDefault();
    for (const key of ["a", "b", "c"]) form.elements[key].value = event.target.elements[key].value;
    ask(address(form));
  });
}
