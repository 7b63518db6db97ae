// The keyboard scrolls a table that is wider than the screen.
window.addEventListener("load", () => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((table) => {
    table.tabIndex = 0;
  });
});
