/* The bell: one stream for all tabs of a browser, held by one of them. It only rings; each visible tab
   then asks for its live parts as it does anyway. Without it the pages poll, and miss nothing.
   Notifications, where this browser was allowed to: read at a ring, else twice a minute, and told
   once by whichever tab holds the stream. A module: its names are its own, those of app.js it sees. */

const bell = { at: body.dataset.bell, alerts: body.dataset.alerts, who: body.dataset.who };
const ALERTS_EVERY_MS = 30_000;
const AGAIN_MS = 60_000;
const TOLD_MAX = 500;
const ONE_BY_ONE_MAX = 3;
const tabs = new BroadcastChannel("clearhouse-bell");
tabs.addEventListener("message", answer);

/* Which tab holds the stream: a visible one, or any where notifications are wanted. */
let holding = null;
function hold() {
  const wanted = !document.hidden || wishes();
  if (wanted && !holding) {
    const mine = (holding = new AbortController());
    navigator.locks?.request(`bell ${bell.who}`, { signal: mine.signal }, () => listen(mine.signal))
      .catch(() => {}).finally(() => { if (holding === mine) holding = null; });
  } else if (!wanted) letGo();
}
function letGo() {
  holding?.abort();
  holding = null;
}

/* Ends when the tab lets go, or with the login. A refused stream is asked for again later. */
function listen(signal) {
  return new Promise((done) => {
    let stream, again, wasOpen = false;
    const open = () => {
      stream = new EventSource(bell.at);
      // Taken up again, it may have missed a ring.
      stream.addEventListener("open", () => {
        (wasOpen ? ring : look)();
        wasOpen = true;
      });
      stream.addEventListener("ring", ring);
      stream.addEventListener("end", end);
      stream.addEventListener("error", () => {
        if (stream.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS);
      });
    };
    const looks = setInterval(look, ALERTS_EVERY_MS);
    function end() {
      stream.close();
      clearTimeout(again);
      clearInterval(looks);
      done();
    }
    signal.addEventListener("abort", end);
    open();
  });
}
function ring() {
  tabs.postMessage("ring");
  answer();
  look();
}
function answer() {
  if (!live.paused && !document.hidden) refresh();
}

document.addEventListener("visibilitychange", hold);
addEventListener("pagehide", letGo);
addEventListener("pageshow", hold);

/* Notifications: a wish of this browser, for this person in this workspace. */
const WISH = `notify ${bell.who}`;
const TOLD = `told ${bell.who}`;
const allowed = () => "Notification" in window && Notification.permission === "granted";
const wishes = () => allowed() && localStorage.getItem(WISH) === "on";

let tag = "";
async function look() {
  if (!wishes()) return;
  const headers = { "HX-Request": "true", "HX-PTag": tag };
  const got = await fetch(bell.alerts, { headers }).catch(() => null);
  if (got?.status !== 200) return;
  tag = got.headers.get("HX-PTag");
  tell((await got.json()).alerts);
}

/* What is there when the wish is made is known, and is not told. */
function tell(alerts) {
  const known = JSON.parse(localStorage.getItem(TOLD));
  const keys = alerts.map((each) => each.key);
  const fresh = known ? alerts.filter((each) => !known.includes(each.key)) : [];
  const rest = (known ?? []).filter((each) => !keys.includes(each));
  localStorage.setItem(TOLD, JSON.stringify([...keys, ...rest].slice(0, TOLD_MAX)));
  if (fresh.length <= ONE_BY_ONE_MAX) fresh.forEach(show);
  else show({ key: "several", title: "Need an answer", about: `${fresh.length} are new`, address: "/inbox" });
}
function show({ key, title, about, address }) {
  const shown = new Notification(title, { body: about, tag: key });
  shown.addEventListener("click", () => {
    shown.close();
    window.focus();
    location.assign(address);
  });
}

/* Settings: how it stands in this browser, and the wish. */
const STANDS = {
  none: "This browser shows no notifications to pages at this address.",
  denied: "This browser blocks them. Allow notifications for this address in its own settings.",
  off: "They are off in this browser.",
  on: "They are on in this browser, for you in this workspace.",
};
function standing() {
  if (!("Notification" in window) || !navigator.locks) return "none";
  if (Notification.permission === "denied") return "denied";
  return wishes() ? "on" : "off";
}
function drawWish() {
  const [text, button, now] = [$("#bell-stands"), $("#bell-wish"), standing()];
  text.textContent = STANDS[now];
  button.hidden = !["on", "off"].includes(now);
  button.textContent = now === "on" ? "Stop in this browser" : "Notify me in this browser";
}
async function wish() {
  if (wishes()) localStorage.removeItem(WISH);
  else if (await Notification.requestPermission() === "granted") {
    localStorage.setItem(WISH, "on");
    localStorage.removeItem(TOLD);
    tag = "";
    await look();
  }
  hold();
  drawWish();
}
if ($("#bell-wish")) {
  $("#bell-wish").addEventListener("click", wish);
  drawWish();
}
