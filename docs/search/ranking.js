// Ranks the site's search for questions in a reader's own words. Sphinx's search asks for every word;
// this one takes pages with any of them, and a rare word counts more than a common one.
"use strict";

// The index leaves out numbers. Status codes are searched by the words that pages have for them.
const WORDS_OF_CODES = {
  401: "key",
  403: "refused",
  404: "missing page",
  429: "rate limit exceeded",
  500: "outage",
  502: "outage",
  503: "outage",
};

// Where a word matches, and how much it counts there.
const IN_QUESTION = 5; // the page's comment `found by`
const IN_TITLE = 3;
const IN_TEXT = 1;
const PART_OF_WORD = 0.3; // times the place's value
const MIN_PART_LENGTH = 4;

// Reference pages mention everything, so they rank below the pages that answer a question.
const REFERENCE_PAGES = new Set(["architecture", "commands", "options", "python-api"]);
const REFERENCE_FACTOR = 0.4;
const HOW_TO_FACTOR = 1.25;

const asList = (files) => (files === undefined ? [] : Array.isArray(files) ? files : [files]);

const stemmedWords = (text) => {
  const stemmer = new Stemmer();
  return splitQuery(text.toLowerCase())
    .filter((word) => !stopwords.has(word))
    .map((word) => stemmer.stemWord(word));
};

// Returns a map from each stemmed word of a `found by` comment to the files that have it.
const wordsOfQuestions = (entries) => {
  const filesOfWords = new Map();
  for (const [entry, places] of Object.entries(entries)) {
    const files = places.filter(([, , isMain]) => isMain).map(([file]) => file);
    for (const word of stemmedWords(entry)) {
      if (!filesOfWords.has(word)) filesOfWords.set(word, new Set());
      files.forEach((file) => filesOfWords.get(word).add(file));
    }
  }
  return filesOfWords;
};

// Returns a map from file to the best value of one word in it.
const valuesOfWord = (word, places) => {
  const values = new Map();
  const note = (file, value) => values.set(file, Math.max(value, values.get(file) || 0));
  for (const { filesOf, value } of places) filesOf(word).forEach((file) => note(file, value));
  if (values.size === 0 && word.length >= MIN_PART_LENGTH) {
    for (const { wordsWith, filesOf, value } of places) {
      wordsWith(word).forEach((longer) => filesOf(longer).forEach((file) => note(file, value * PART_OF_WORD)));
    }
  }
  return values;
};

const pageFactor = (page) => {
  if (REFERENCE_PAGES.has(page)) return REFERENCE_FACTOR;
  return page.startsWith("how-to/") && page !== "how-to/index" ? HOW_TO_FACTOR : 1;
};

// Returns the scores of files. A word in few files counts more, by its inverse document frequency.
const scoresOfFiles = (words, index) => {
  const questions = wordsOfQuestions(index.indexentries);
  const lookups = [
    { table: index.terms, value: IN_TEXT },
    { table: index.titleterms, value: IN_TITLE },
  ].map(({ table, value }) => ({
    value,
    filesOf: (word) => asList(Object.hasOwn(table, word) ? table[word] : undefined),
    wordsWith: (part) => Object.keys(table).filter((word) => word.includes(part)),
  }));
  const places = [...lookups, {
    value: IN_QUESTION,
    filesOf: (word) => [...(questions.get(word) || [])],
    wordsWith: (part) => [...questions.keys()].filter((word) => word.includes(part)),
  }];
  const scores = new Map();
  for (const word of words) {
    const values = valuesOfWord(word, places);
    const rarity = Math.log(1 + index.docnames.length / Math.max(values.size, 1));
    values.forEach((value, file) => scores.set(file, (scores.get(file) || 0) + value * rarity));
  }
  return scores;
};

// Before the search itself begins, which waits for the same event.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const parseQuery = Search._parseQuery;
  Search._parseQuery = (query) => parseQuery(query.replace(/\b\d{3}\b/g, (code) => WORDS_OF_CODES[code] || code));
  const objectSearch = Search.performObjectSearch;

  Search._performSearch = (query, searchTerms, excludedTerms, highlightTerms, objectTerms) => {
    document.getElementById("search-progress")?.replaceChildren();
    const index = Search._index;
    const excludedFiles = new Set([...excludedTerms].flatMap((word) => asList(index.terms[word])));
    const pages = [...scoresOfFiles(searchTerms, index)]
      .filter(([file]) => !excludedFiles.has(file))
      .map(([file, score]) => [
        index.docnames[file],
        index.titles[file],
        "",
        null,
        score * pageFactor(index.docnames[file]),
        index.filenames[file],
        SearchResultKind.text,
      ]);
    // Names of Python follow the pages, as only a search for exactly such a name needs them.
    const names = [...objectTerms].flatMap((term) => objectSearch(term, objectTerms)).map((item) => item.with(4, 0));
    // The page takes results from the end of the list.
    return [...pages, ...names].sort((one, other) => one[4] - other[4]);
  };
});
