// Two clicks where one is meant: the second was meant for what was there before, and does nothing.

const SOON = 400; // milliseconds in which nobody has read what came
const NEAR = 30; // pixels: a finger trembles

let last = { at: -Infinity, x: 0, y: 0 }; // where and when the pointer was clicked
let came = 0; // when something else came under it

/** Say that something else is under the pointer from now on, such as the next task. */
export function changed() {
  came = performance.now();
}

document.addEventListener("click", (event) => {
  if (event.detail === 0) return; // by a key
  const now = { at: event.timeStamp, x: event.clientX, y: event.clientY };
  const isSecond = now.at - last.at < SOON && Math.hypot(now.x - last.x, now.y - last.y) < NEAR && came >= last.at;
  last = now;
  if (!isSecond) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);
