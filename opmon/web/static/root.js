// What stands before every path of these pages: this file is at ROOT/static/VERSION/.
export const ROOT = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");
