/* What the pages do beyond links and forms: pause and resume of updates, countdowns, the keys, the
   notices of a lost server, typed answers kept over an expired login. No rule of the product is
   here: every page does the same without it, and the server checks each deed again. */
"use strict";

const body = document.body;
const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const FIELDS = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]";

/* Live or paused. A hidden tab asks for nothing; one fetch on return. Only a part takes a part's place
   (noSwap in base.html): every other answer is a miss. From its second miss on a part is asked for by
   the timer, and not at all once the login has ended, until somebody comes back to the tab. */
const live = { paused: false, ended: false, since: null, due: null, words: "Updating again" };
const misses = new WeakMap();
const HEARD = [200, 204, 304];
const ENDED = [401, 403];
const MISSES_MAX = 2;
const RETRY_S = [10, 30, 60];

const isPoll = (ctx) => Boolean(ctx?.sourceElement?.matches?.("[data-live-part]"));
const missedBy = (part) => misses.get(part) ?? 0;
const worst = () => Math.max(0, ...$$("[data-live-part]").map(missedBy));

document.addEventListener("htmx:before:request", (event) => {
  const ctx = event.detail.ctx;
  if (isPoll(ctx) && (live.paused || document.hidden || typing(ctx) || rests(ctx))) event.preventDefault();
});
document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => answered(ctx, ctx.response.status));
document.addEventListener("htmx:error", ({ detail: { ctx } }) => { if (ctx) answered(ctx); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

function typing({ sourceElement: part }) {
  return part.contains(document.activeElement) && document.activeElement.matches(FIELDS);
}
function rests({ sourceElement: part, sourceEvent }) {
  return sourceEvent.type === "every" && (live.ended || missedBy(part) >= MISSES_MAX);
}

function answered(ctx, status) {
  (isPoll(ctx) ? polled : pressed)(ctx.sourceElement, status);
  again();
  notice();
}
function polled(part, status) {
  const heard = HEARD.includes(status);
  live.ended = ENDED.includes(status);
  misses.set(part, heard || live.ended ? 0 : missedBy(part) + 1);
  live.since = worst() ? live.since ?? clockNow() : null;
  if (heard && !live.paused) $("#live .asof").textContent = `as of ${timeNow()}`;
}
function pressed(_, status) {
  live.ended ||= status === 401;
  const missing = !live.ended && !HEARD.includes(status);
  $("#unanswered").hidden = !missing;
  if (missing) tell("One answer did not come");
}

function again() {
  clearTimeout(live.due);
  if (worst() < MISSES_MAX) return;
  const wait_s = RETRY_S[Math.min(worst() - MISSES_MAX, RETRY_S.length - 1)];
  live.due = setTimeout(() => { refresh(); again(); }, 1000 * wait_s);
}

function notice() {
  const lost = !live.ended && worst() >= MISSES_MAX;
  if (lost) $("#not-updating time").textContent = live.since;
  $("#not-updating").hidden = !lost;
  $("#login-ended").hidden = !live.ended;
  const lack = live.ended ? "Your login has ended" : lost && `Not updating since ${live.since}`;
  const words = lack || "Updating again";
  if (words !== live.words) say(words);
  live.words = words;
}

function refresh() {
  for (const part of $$("[data-live-part]")) htmx.trigger(part, "refresh");
}

function pause() {
  live.paused = !live.paused;
  const button = $("[data-act=pause]");
  button.textContent = live.paused ? "Paused" : "Live";
  button.setAttribute("aria-pressed", String(live.paused));
  $("#live").dataset.live = live.paused ? "off" : "on";
  tell(live.paused ? "Updates paused" : "Updates resumed");
  if (!live.paused) refresh();
}

/* At most one message in ten seconds, never a table and never a countdown: of those that come within
   them the last is said, when they are over. */
const SAY_EVERY_MS = 10_000;
const spoken = { at: -SAY_EVERY_MS, next: null };
function say(text) {
  clearTimeout(spoken.next);
  spoken.next = setTimeout(() => tell(text), spoken.at + SAY_EVERY_MS - Date.now());
}
/* What answers one's own press is said at once. */
function tell(text) {
  spoken.at = Date.now();
  $("#polite").textContent = text;
}

/* What a part says of itself: a sentence where it changed, a number where it rose; and the title of the
   tab, where that is the part's. */
document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => { ctx.was = { ...ctx.target?.dataset }; });
document.addEventListener("htmx:after:swap", ({ detail: { ctx: { was, target } } }) => {
  const is = document.getElementById(target?.id)?.dataset ?? {};
  if (is.say && is.say !== was.say && !(Number(is.new) < Number(was.new))) say(is.say);
  if (is.title && was.title === document.title) document.title = is.title;
  tick();
});

/* Countdowns: from the server's deadlines and a measured offset; one timer for the page. */
const loading_ms = performance.now() - (performance.getEntriesByType("navigation")[0]?.responseStart ?? 0);
const offset_ms = Number(body.dataset.now) * 1000 + loading_ms - Date.now();
const pad = (n) => String(n).padStart(2, "0");
const zone_ms = Number(body.dataset.zoneS ?? 0) * 1000;
const timeNow = () => new Date(Date.now() + offset_ms + zone_ms).toISOString().slice(11, 19);
const clockNow = () => `${timeNow()} ${body.dataset.zone ?? "UTC"}`;

/* The zone for who chose the browser's, and a word where this clock and the server's differ. */
const secure = location.protocol === "https:" ? "; secure" : "";
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax${secure}`;
const differs = $("[data-clock]");
if (differs && Math.abs(offset_ms) > 2000) {
  differs.textContent = `your clock is ${counted(Math.round(Math.abs(offset_ms) / 1000))} ${offset_ms < 0 ? "ahead" : "behind"}`;
  differs.hidden = false;
}

function counted(length) {
  const seconds = Math.floor(length);
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h ? `${h}:${pad(m)}:${pad(s)}` : `${m}:${pad(s)}`;
}
function tick() {
  if (live.paused) return;
  for (const each of $$("time[data-due]")) {
    const left = (Date.parse(each.dateTime) - Date.now() - offset_ms) / 1000;
    const text = left > 0 ? `in ${counted(left)}` : -left <= Number(each.dataset.due) ? "now" : `overdue by ${counted(-left)}`;
    if (Math.abs(left) < 86_400 && each.textContent !== text) each.textContent = text;
  }
}
setInterval(tick, 1000);

/* Typed answers outlive an expired login: kept in this tab by person, deed and decision version.
   Where the version moved, the form of the next one finds what was typed for the one before. */
const deedOf = (form) => `typed:${body.dataset.who}:${new URL(form.action).pathname}:`;
const keptOf = (deed) => Object.keys(sessionStorage).filter((key) => key.startsWith(deed));
const forget = (deed) => keptOf(deed).forEach((key) => sessionStorage.removeItem(key));
function keep(form) {
  const typed = [...new FormData(form)].filter(([name, value]) =>
    typeof value === "string" && !["csrfmiddlewaretoken", "once"].includes(name) && form.elements[name].dataset?.forget === undefined);
  forget(deedOf(form));
  sessionStorage.setItem(deedOf(form) + (form.elements.version?.value ?? ""), JSON.stringify(typed));
}
function restore(form) {
  const [key] = keptOf(deedOf(form));
  for (const [name, value] of JSON.parse(sessionStorage.getItem(key) ?? "[]")) {
    const radio = $$("input[type=radio]:not(:disabled)", form).find((each) => each.name === name && each.value === value);
    if (radio) radio.checked = true;
    const field = $$("input:not([type]), textarea, select", form).find((each) => each.name === name);
    if (!value || !field || field.value) continue;
    field.value = value;
    field.closest("details")?.setAttribute("open", "");
  }
}
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-keep]");
  if (form) keep(form);
});
document.addEventListener("submit", (event) => {
  sessionStorage.setItem("sent", deedOf(event.target));
  if (event.target.matches("form[data-ends-login]")) sessionStorage.clear();
  // A login in another tab has drawn a new token; the one that this page came with is void.
  const token = event.target.elements?.csrfmiddlewaretoken;
  const fresh = document.cookie.match(/(?:^|; )(?:__Host-|__Secure-)?csrftoken=([^;]+)/);
  if (token && fresh) token.value = fresh[1];
});
const sent = sessionStorage.getItem("sent");
if (sent && $("#said.success")) forget(sent);
sessionStorage.removeItem("sent");
for (const form of $$("form[data-keep]")) (form.dataset.keep === "given" ? keep : restore)(form);

/* Keys. Single letters work outside fields only; none of them decides anything. */
const rows = () => $$("[data-row]");
let at = -1;
let from = -1;
function stand(where) {
  at = where;
  for (const row of rows()) delete row.dataset.uiHere;
  rows()[at].dataset.uiHere = "";
}
function go(step) {
  const all = rows();
  if (!all.length) return;
  stand(Math.max(0, Math.min(all.length - 1, at + step)));
  $("a[href]", all[at])?.focus({ preventScroll: false });
  if (peeked.wanted) look();
}

/* Peek: the essentials of the row one stands on, beside the list. Asked for by its key, focus stays
   on the row, and the panel follows; asked for by its control, focus goes into the panel. */
const panel = $("#peek");
const peeked = { wanted: false, enters: false };
function look() {
  const control = $(".peeks", rows()[at]);
  if (!control) return;
  Object.assign(peeked, { wanted: true, enters: false });
  htmx.ajax("GET", control.getAttribute("hx-get"), { source: control, target: panel });
}
document.addEventListener("click", (event) => {
  const row = panel && event.target.closest(".peeks")?.closest("[data-row]");
  if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
  Object.assign(peeked, { wanted: true, enters: true });
  stand(rows().indexOf(row));
});
document.addEventListener("htmx:after:swap", (event) => {
  const ctx = event.detail?.ctx;
  if (!panel || ctx?.target !== panel || ctx.swap === "none") return;
  if (!peeked.wanted) return void panel.replaceChildren();
  if (panel.hidden && !peeked.enters) tell(`Beside the list: ${$("#peek-title")?.textContent}`);
  panel.hidden = false;
  panel.scrollTop = 0;
  if (peeked.enters) $("#peek-title")?.focus();
});
function peek() {
  if (!panel) return;
  if (peeked.wanted) return void unpeek();
  go(at < 0 ? 1 : 0);
  look();
}
function unpeek() {
  const leaves = panel.contains(document.activeElement) || document.activeElement === body;
  peeked.wanted = false;
  panel.hidden = true;
  panel.replaceChildren();
  if (leaves && rows()[at]) $("a[href]", rows()[at])?.focus();
}
function select(range) {
  const boxes = rows().map((row) => $("input[type=checkbox]", row));
  if (!boxes[at]) return;
  const on = !boxes[at].checked;
  const [low, high] = range && from >= 0 ? [Math.min(at, from), Math.max(at, from)] : [at, at];
  for (const box of boxes.slice(low, high + 1)) if (box && !box.disabled) box.checked = range || on;
  from = at;
  boxes[at].dispatchEvent(new Event("change", { bubbles: true }));
}
const SECTIONS = { i: "/inbox", c: "/calls", s: "/sessions", t: "/tools", b: "/budgets", a: "/audit", o: "/" };
function press(name) {
  const target = $(`[data-key~="${name}"]:not([aria-disabled=true])`);
  if (target?.closest(".bulk") && !picked().length) pick();
  target?.click();
  if (target?.tagName === "SUMMARY") $("select, input:not([type=hidden]), textarea", target.parentElement)?.focus();
}
/* In a list, a deed is for what is selected; where nothing is, for the row one stands on. */
const picked = () => $$("[data-row] input[type=checkbox]:checked");
function pick() {
  const box = rows()[at] && $("input[type=checkbox]", rows()[at]);
  if (box && !box.disabled) box.checked = true;
}
function clear() {
  for (const box of picked()) box.checked = false;
}
const named = () => rows()[at]?.dataset.id ?? $("[data-id]:not([data-row])")?.dataset.id;
const copy = (text, what) => navigator.clipboard?.writeText(text).then(() => tell(`Copied the ${what}`));
const KEYS = {
  j: () => go(1), k: () => go(-1), x: () => select(false), X: () => select(true),
  "/": () => $("#search")?.focus(), ".": pause, r: refresh,
  y: () => named() && copy(named(), "id"), Y: () => copy(location.href, "link"),
  "?": () => $("#keys").showModal(), l: peek,
};
for (const name of ["n", "p", "c", "h", "e", "v", "t"]) KEYS[name] = () => press(name);
for (const name of ["1", "2", "3"]) KEYS[name] = () => $(`#question-${name}`)?.focus();

let leader = 0;
document.addEventListener("keydown", (event) => {
  const inField = event.target.matches?.(FIELDS);
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") return void press("submit");
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return void $("#search")?.focus();
  }
  if (event.key === "Escape" && inField) return void event.target.blur();
  if (inField || event.ctrlKey || event.metaKey || event.altKey || body.dataset.letters === "off") return;
  if ($("dialog[open]")) return;
  if (event.key === "Escape") return void (peeked.wanted ? unpeek() : clear());
  if (Date.now() - leader < 1500 && SECTIONS[event.key]) return void location.assign(SECTIONS[event.key]);
  leader = event.key === "g" ? Date.now() : 0;
  const act = KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

/* The copying of a payload: a value by its path, the path, or all of it as the server masks it.
   Its controls are made when it is opened; to press a value of the tree chooses its path. */
const leaves = (frame) => $$(".leaf", frame);
const pathOf = (leaf) => $(":scope > .key", leaf)?.title ?? "";
const valueOf = (leaf) => $$(":scope > bdi:not(.key), :scope > .rest > bdi", leaf).map((each) => each.textContent).join("");

function control(text, deed) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: text });
  button.addEventListener("click", deed);
  return button;
}
async function copyAll(frame, from) {
  if (from === "page") return copy($$(".raw > bdi", frame).map((each) => each.textContent).join(""), "text");
  const answer = await fetch(from).catch(() => null);
  if (answer?.ok && !answer.redirected) return copy(await answer.text(), "text");
  tell("Nothing was copied: load the page again");
}
document.addEventListener("toggle", ({ target: box }) => {
  if (!box.matches("[data-copying]") || !box.open || box.children.length > 1) return;
  const [frame, row, paths] = [box.closest(".payload"), document.createElement("div"), document.createElement("select")];
  const chosen = () => leaves(frame)[paths.selectedIndex];
  if (leaves(frame).length) {
    paths.ariaLabel = "Path of the value";
    paths.append(...leaves(frame).map((leaf) => new Option(pathOf(leaf) || "the whole value")));
    row.append(paths, control("Copy value", () => copy(valueOf(chosen()), "value")), control("Copy path", () => copy(pathOf(chosen()), "path")));
  }
  if (box.dataset.copying) row.append(control("Copy all", () => copyAll(frame, box.dataset.copying)));
  box.append(row);
}, true);
document.addEventListener("click", ({ target }) => {
  const leaf = target.closest(".payload .leaf");
  const paths = leaf && $(".copying select", leaf.closest(".payload"));
  if (paths) paths.selectedIndex = leaves(leaf.closest(".payload")).indexOf(leaf);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act], [data-copy], button[aria-disabled=true]");
  if (!button) return;
  if (button.getAttribute("aria-disabled") === "true") event.preventDefault();
  else if (button.dataset.act === "pause") pause();
  else if (button.dataset.act === "refresh") refresh();
  else if (button.dataset.act === "unpeek") unpeek();
  else if (button.dataset.copy !== undefined) copy(button.dataset.copy, button.dataset.what ?? "text");
});

/* Two minutes before a list or a request lapses, that is said and shown, once. */
const SOON_MS = 120_000;
function warn() {
  for (const each of $$("[data-lapses]:not([data-ui-soon])")) {
    const left_ms = Date.parse($("time", each).dateTime) - Date.now() - offset_ms;
    if (left_ms < 0 || left_ms > SOON_MS) continue;
    each.dataset.uiSoon = "";
    say(each.dataset.lapses);
  }
}
setInterval(warn, 1000);

/* A link to a call that is folded away unfolds it. */
function unfold() {
  const folded = document.getElementById(location.hash.slice(1))?.closest("details.alike:not([open])");
  if (!folded) return;
  folded.open = true;
  document.getElementById(location.hash.slice(1)).scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

for (const button of $$("[data-act=pause]")) button.hidden = !$("[data-live-part]");
for (const button of $$("[data-copy][hidden]")) button.hidden = !navigator.clipboard;
$("#said")?.focus({ preventScroll: true });

/* On a phone the rail is a strip: bring the place where one is into its middle. */
const [rail, here] = [$(".rail"), $(".rail [aria-current]")];
if (here) {
  const [strip, place] = [rail.getBoundingClientRect(), here.getBoundingClientRect()];
  rail.scrollLeft += place.left + place.width / 2 - strip.left - strip.width / 2;
}
