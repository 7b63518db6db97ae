// Light and dark: what the system prefers, or what was chosen here.

const LOOK_KEY = "surecall-look";

function chosenLook() {
  try {
    const look = localStorage.getItem(LOOK_KEY);
    return look === "light" || look === "dark" ? look : null;
  } catch {
    return null;
  }
}

function isDark() {
  return (chosenLook() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
}

function showLook() {
  const look = chosenLook();
  if (look) document.documentElement.dataset.look = look;
}

function switchLook() {
  const look = isDark() ? "light" : "dark";
  document.documentElement.dataset.look = look;
  try {
    localStorage.setItem(LOOK_KEY, look);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  say(`The page is ${look} now.`);
}

function lookButton() {
  return button(icon("theme"), switchLook, {
    class: "bare",
    id: "look",
    "aria-label": "Change to dark or light",
    title: "Dark or light (d)",
  });
}
