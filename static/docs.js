// Starts Swagger from the page's data attribute, and lets it follow the system's dark mode,
// which its own stylesheet knows only as a class of the root.
const page = document.getElementById("swagger-ui");
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  ...JSON.parse(page.dataset.settings),
  domNode: page,
  presets: [SwaggerUIBundle.presets.apis],
});
