// Pictures at any zoom and contrast, by keys, wheel, fingers or sliders.

import { byId } from "./dom.js";

const ZOOMS = [1, 2, 4, 8];
const CONTRASTS = [100, 180, 300];
const SMALLEST = 0.25;
const LARGEST = 32;
const PIXELS = 200; // a picture with fewer a side is shown with its pixels, not smoothed
const TINY = 24; // rem: it is shown no larger, or 12 px for each pixel, for from too near nobody sees what it is

export class Viewer {
  constructor() {
    this.stage = byId("stage");
    this.frame = byId("pictures");
    this.pointers = new Map();
    byId("zoom-in").addEventListener("click", () => this.zoom(this.scale * 1.5));
    byId("zoom-out").addEventListener("click", () => this.zoom(this.scale / 1.5));
    byId("zoom-next").addEventListener("click", () => this.zoomOn());
    byId("contrast-next").addEventListener("click", () => this.contrastOn());
    for (const id of ["brightness", "contrast"]) byId(id).addEventListener("input", () => this.#light());
    this.frame.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.frame.addEventListener("dblclick", () => this.zoom(this.scale > 1 ? 1 : 3));
    for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"])
      this.frame.addEventListener(kind, (event) => this.#point(event));
    this.zoom(1);
  }

  /** Other pictures, whole; brightness and contrast stay. */
  show(pictures) {
    this.frame.replaceChildren(...pictures);
    for (const picture of pictures) {
      const fit = () => {
        const side = Math.max(picture.naturalWidth, picture.naturalHeight);
        picture.classList.toggle("pixels", side < PIXELS);
        picture.style.setProperty("--most", side < PIXELS ? `max(${TINY}rem, ${12 * side}px)` : "none");
      };
      if (picture.complete) fit();
      else picture.addEventListener("load", fit, { once: true });
    }
    this.zoom(1);
  }

  zoomOn() {
    this.zoom(ZOOMS.find((zoom) => zoom > this.scale + 0.01) ?? 1);
  }

  contrastOn() {
    const now = Number(byId("contrast").value);
    byId("contrast").value = CONTRASTS.find((each) => each > now) ?? CONTRASTS[0];
    this.#light();
  }

  zoom(scale) {
    this.scale = Math.min(LARGEST, Math.max(SMALLEST, scale));
    if (this.scale === 1) this.left = this.top = 0;
    this.#place();
  }

  #place() {
    const wide = (this.frame.clientWidth * Math.max(0, this.scale - 0.5)) / 2;
    const high = (this.frame.clientHeight * Math.max(0, this.scale - 0.5)) / 2;
    this.left = Math.min(wide, Math.max(-wide, this.left));
    this.top = Math.min(high, Math.max(-high, this.top));
    this.frame.style.setProperty("--move", `translate(${this.left}px, ${this.top}px) scale(${this.scale})`);
    byId("zoom-level").textContent = `${Math.round(100 * this.scale)} %`;
  }

  #light() {
    const [brightness, contrast] = ["brightness", "contrast"].map((id) => byId(id).value);
    this.frame.style.setProperty("--light", `brightness(${brightness}%) contrast(${contrast}%)`);
  }

  #wheel(event) {
    event.preventDefault();
    this.zoom(this.scale * Math.exp(-event.deltaY / 400));
  }

  #point(event) {
    if (event.type === "pointerdown") {
      this.frame.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    } else if (event.type !== "pointermove") {
      this.pointers.delete(event.pointerId);
    } else if (this.pointers.has(event.pointerId)) {
      const before = this.#spread();
      const [x, y] = this.pointers.get(event.pointerId);
      this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
      const share = 1 / this.pointers.size;
      this.left += (event.clientX - x) * share;
      this.top += (event.clientY - y) * share;
      this.zoom(before ? (this.scale * this.#spread()) / before : this.scale);
    }
  }

  /** How far two fingers are apart; 0 where there are not two. */
  #spread() {
    const [one, other] = [...this.pointers.values()];
    return other ? Math.hypot(one[0] - other[0], one[1] - other[1]) : 0;
  }
}
