// The server's clock, as its answers tell it. What people say is ordered by when they said it: a clock of theirs that runs
// ahead must not put an old answer before a newer one.

export class Clock {
  constructor() {
    this.#forget();
  }

  /** What the server wrote as its time, in an answer that has just come to what was asked at `asked` by our own clock. */
  heard(written, asked) {
    const at = Date.parse(written);
    const [least, most] = [at - Date.now(), at + 1 - asked];
    if (!(least <= most)) return; // it was not told, or our own clock was set meanwhile
    if (least > this.most || most < this.least) this.#forget(); // one of the clocks was set
    this.least = Math.max(this.least, least);
    this.most = Math.min(this.most, most);
  }

  /** The moment, later with each call; by our own clock as long as that may be right. Else it is rather early than late:
      the server takes a time that is yet to come for that of the arrival, and an older answer might then be the newer. */
  now() {
    const behind = this.least > 0 || this.most < 0 ? this.least : 0;
    this.last = Math.max(this.last + 1, Date.now() + behind);
    return new Date(this.last);
  }

  #forget() {
    this.least = -Infinity; // our own clock is behind the server's by so many milliseconds at least, and at most
    this.most = Infinity;
    this.last = 0;
  }
}
