// A search that is typed before the index is ready waits for it, and says so.

window.addEventListener("load", () => {
  const input = document.getElementById("properdocs-search-query");
  const results = document.getElementById("properdocs-search-results");
  if (!input || !results || typeof initSearch !== "function") return;

  const say = () => {
    results.textContent = input.value ? "The index is being read …" : "";
  };
  const begin = initSearch;
  input.addEventListener("input", say);
  input.form.addEventListener("submit", (event) => event.preventDefault());
  initSearch = () => {
    input.removeEventListener("input", say);
    begin();
    if (input.value) doSearch();
  };
});
