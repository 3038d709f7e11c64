// The site's search leaves out numbers: status codes are looked for by the words that pages have for them.
"use strict";

const WORDS_OF_CODES = {
  401: "key",
  403: "refused",
  404: "missing page",
  429: "rate limit exceeded",
  500: "outage",
  502: "outage",
  503: "outage",
};

// Before the search itself begins, which waits for the same event.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const parse = Search._parseQuery;
  Search._parseQuery = (query) => parse(query.replace(/\b\d{3}\b/g, (code) => WORDS_OF_CODES[code] || code));
});
