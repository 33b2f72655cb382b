const root = document.documentElement, button = document.getElementById("scheme");
const dark = () => (root.dataset.scheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const show = () => { button.textContent = dark() ? "Light colours" : "Dark colours"; };
button.hidden = false;
button.addEventListener("click", () => { root.dataset.scheme = dark() ? "light" : "dark"; show(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
show();
