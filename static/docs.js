// Starts Swagger from the page's data attribute, and lets it follow the system's dark mode,
// which its own stylesheet knows only as a class of the root.
const page = document.getElementById("swagger-ui");
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

// To look for references in the security schemes, Swagger resolves the whole description before it
// draws anything, two thirds of the wait. Ours have none; an operation is resolved when it is opened.
const lazily = (resolve) => (path) => (path[0] === "components" ? undefined : resolve(path));

dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  ...JSON.parse(page.dataset.settings),
  domNode: page,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [{ statePlugins: { spec: { wrapActions: { requestResolvedSubtree: lazily } } } }],
});
