// Back into opmon, where a session has ended.
import { ROOT } from "./root.js";

/** A link to sign in; what is on the page stays where it opens a tab of its own. */
export function signInLink(words = "sign in", inTab = false) {
  const next = encodeURIComponent(location.pathname.slice(ROOT.length));
  const link = Object.assign(document.createElement("a"), { href: `${ROOT}/sign-in?next=${next}`, textContent: words });
  if (inTab) link.target = "_blank";
  return link;
}
