// Makes a page live: it asks for new events, shows the progress of uploads, and draws the rank history.
// The server renders everything; the script exchanges the parts of the page that differ in a fresh copy.
"use strict";

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const body = document.body;
const POLL_MS = 5000;

// ---- times: sent in UTC, shown in the visitor's zone

const zoned = new Intl.DateTimeFormat([], {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});

function localise(place) {
  for (const one of place.querySelectorAll("time[datetime]:not([title])")) {
    one.title = one.textContent;
    one.textContent = zoned.format(new Date(one.dateTime));
  }
}
localise(document);

// ---- news

const live = (() => {
  if (!("livePage" in body.dataset)) return { refresh: async () => {} };
  let shown = Number(body.dataset.revision), loading = null, again = false, timer = 0;

  const load = async () => {
    const address = location.pathname + location.search;
    const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (fresh.body.dataset.revision === undefined) return;
    shown = Number(fresh.body.dataset.revision);
    exchange(fresh);
  };

  const refresh = () => {
    if (loading) { again = true; return loading; }
    loading = load().catch(() => {}).finally(() => {
      loading = null;
      if (again) { again = false; setTimeout(refresh, 400); }
    });
    return loading;
  };

  const ask = async () => {
    try {
      const answer = await fetch(`${body.dataset.events}?after=${shown}&limit=1`, { cache: "no-store" });
      if (answer.ok && (await answer.json()).length) refresh();
    } catch { /* the next time, perhaps */ }
  };
  const listen = () => { if (!timer && !document.hidden) { timer = setInterval(ask, POLL_MS); ask(); } };
  const rest = () => { clearInterval(timer); timer = 0; };
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
  addEventListener("pagehide", rest);
  addEventListener("pageshow", listen);
  listen();
  return { refresh };
})();

const FOCUSABLE = "a, button, summary, [tabindex]";

// The HTML of a region, without the parts that this script has added.
const plain = (region) => region.innerHTML.replaceAll(/ class="(own ?)?changed"| open=""/g, (_, own) => (own ? ' class="own"' : ""));

// Exchange the live regions that differ; rows of the board move smoothly to their new places.
function exchange(fresh) {
  const before = rowsOf(document);
  localise(fresh);
  let changed = false;
  for (const region of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(region.id);
    if (!next || plain(next) === plain(region)) continue;
    const open = [...region.querySelectorAll("details")].map((one) => one.open);
    const focused = [...region.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
    const copy = document.importNode(next, true);
    region.replaceChildren(...copy.childNodes);
    region.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? one.open; });
    if (focused >= 0) region.querySelectorAll(FOCUSABLE)[focused]?.focus({ preventScroll: true });
    changed = true;
  }
  if (!changed) return;
  announce(before, rowsOf(document));
  glide(before);
  drawHistory();
}

function rowsOf(place) {
  const rows = new Map();
  for (const row of place.querySelectorAll("#board tr[data-team]")) {
    const { name, rank, value } = row.dataset;
    rows.set(row.dataset.team, { name, rank, value, top: row.getBoundingClientRect().top, row });
  }
  return rows;
}

function glide(before) {
  for (const [team, now] of rowsOf(document)) {
    const was = before.get(team);
    if (!was || was.value !== now.value) now.row.classList.add("changed");
    const moved = was ? was.top - now.top : 0;
    if (moved && !calm.matches) {
      now.row.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], { duration: 450, easing: "ease-out" });
    }
  }
}

function announce(before, now) {
  const news = [];
  for (const [team, row] of now) {
    const was = before.get(team);
    if (was && was.value === row.value) continue;
    news.push(row.value ? `${row.name}: ${row.value}, rank ${row.rank.replace("–", " to ")}` : row.name);
  }
  const place = document.getElementById("announcer");
  if (place && news.length) place.textContent = `Board updated. ${news.slice(0, 3).join("; ")}.`;
}

// ---- submissions

const form = document.getElementById("submission");
if (form) {
  const file = form.elements.file, button = form.querySelector("button[type=submit]");
  const progress = form.querySelector(".progress"), meter = progress.querySelector("progress");
  const word = progress.querySelector("span"), result = document.getElementById("result");
  let busy = false;

  const show = (html) => {
    const part = new DOMParser().parseFromString(html, "text/html").querySelector(".result");
    if (!part) return false;
    result.replaceChildren(document.importNode(part, true));
    result.firstElementChild.focus({ preventScroll: true });
    result.scrollIntoView({ block: "nearest" });
    return true;
  };
  const complain = (title, text) => {
    const box = document.createElement("div"), head = document.createElement("h3"), line = document.createElement("p");
    box.className = "result bad";
    box.setAttribute("role", "alert");
    box.tabIndex = -1;
    head.textContent = title;
    line.textContent = text;
    box.append(head, line);
    result.replaceChildren(box);
    box.focus({ preventScroll: true });
  };
  const end = () => { busy = false; button.disabled = false; progress.hidden = true; };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (busy) return;
    const most = Number(file.dataset.most);
    if (file.files[0] && file.files[0].size > most) {
      complain("This file is too large", `At most ${most.toLocaleString("en")} bytes; it has ${file.files[0].size.toLocaleString("en")}. Nothing was sent.`);
      return;
    }
    busy = true;
    button.disabled = true;
    progress.hidden = false;
    meter.value = 0;
    word.textContent = "Sending";
    result.replaceChildren();
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("X-Part", "result");
    request.upload.addEventListener("progress", (at) => {
      if (at.lengthComputable) meter.value = at.loaded / at.total;
    });
    request.upload.addEventListener("load", () => { meter.removeAttribute("value"); word.textContent = "Checking and scoring"; });
    request.addEventListener("load", () => {
      end();
      if (!show(request.responseText)) complain("That did not work", "The server did not answer as expected. Send the same file again; it is charged at most once.");
      if (request.status < 400) form.reset();
      live.refresh();
    });
    request.addEventListener("error", () => {
      end();
      complain("No connection", "It is unknown if the file arrived. Send it again; it is charged at most once.");
    });
    request.send(new FormData(form));
  });
}

// ---- rank history: a line for each team, and for one of them the places that it can have

const SVG = "http://www.w3.org/2000/svg";
const MOST_TEAMS = 12, LABEL = 150, ROW = 30, TOP = 12;
const chart = document.querySelector("[data-chart]");
let points = null, chosen = null;

function node(name, attributes, ...children) {
  const one = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  one.append(...children);
  return one;
}

async function drawHistory() {
  if (!chart) return;
  try {
    const answer = await fetch(chart.dataset.chart, { cache: "no-store" });
    if (!answer.ok) return;
    points = await answer.json();
  } catch { return; }
  plot();
}

// Return each team's place after each step; it is undefined before the team's first.
function tracksOf(all) {
  const steps = [...new Set(all.map((one) => one.submission_id))].sort((a, b) => a - b);
  const index = new Map(steps.map((id, i) => [id, i]));
  const teams = new Map();
  for (const one of all) {
    if (!teams.has(one.team_id)) teams.set(one.team_id, { id: one.team_id, name: one.team, at: [] });
    teams.get(one.team_id).at[index.get(one.submission_id)] = one;
  }
  for (const team of teams.values()) {
    for (let i = 1; i < steps.length; i += 1) team.at[i] ??= team.at[i - 1];
    team.last = team.at[steps.length - 1];
  }
  return { count: steps.length, teams: [...teams.values()].sort((a, b) => a.last.place - b.last.place) };
}

function plot() {
  const section = document.getElementById("history");
  section.hidden = !points || !points.length;
  chart.hidden = section.hidden;
  if (section.hidden) return;
  const { count, teams } = tracksOf(points);
  const own = teams.find((one) => String(one.id) === chart.dataset.own);
  const seen = teams.filter((one, i) => i < MOST_TEAMS || one === own);
  const rows = Math.max(...seen.map((one) => one.last.place), 1);
  const width = chart.clientWidth, height = TOP * 2 + ROW * (rows - 1);
  const label = Math.min(LABEL, width * 0.36), left = 22, right = width - label;
  const x = (i) => (count < 2 ? left : left + ((right - left) * i) / (count - 1));
  const y = (place) => TOP + ROW * (Math.min(place, rows + 0.4) - 1);
  const lit = seen.find((one) => one.id === chosen) ?? own ?? seen[0];
  const drawing = node("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": "Rank history" });
  for (let place = 1; place <= rows; place += 1) {
    drawing.append(node("line", { class: "grid", x1: left, x2: right, y1: y(place), y2: y(place) }));
    if (place === 1 || place === rows || (place % 5 === 0 && rows - place > 1)) drawing.append(node("text", { x: 0, y: y(place) + 4 }, String(place)));
  }
  for (const team of [...seen.filter((one) => one !== lit), lit]) drawing.append(track(team, x, y, right, label, team === lit));
  chart.replaceChildren(drawing);
}

function track(team, x, y, right, label, lit) {
  let line = "", top = [], under = [];
  team.at.forEach((one, i) => {
    if (!one) return;
    const before = team.at[i - 1];
    if (!before) line = `M${x(i)},${y(one.place)}`;
    else if (before.place !== one.place) line += `L${x(Math.max(i - 1, 0))},${y(before.place)}L${x(i)},${y(one.place)}`;
    top.push(`${x(i)},${y(one.rank - 0.35)}`);
    under.unshift(`${x(i)},${y(one.rank_last + 0.35)}`);
  });
  line += `L${right},${y(team.last.place)}`;
  const { rank, rank_last: last, place } = team.last;
  const places = rank === last ? `rank ${rank}` : `rank ${rank} to ${last}`;
  const room = Math.floor((label - 14) / 7.4);
  const name = team.name.length > room ? `${team.name.slice(0, room - 1)}…` : team.name;
  const group = node("g", { class: lit ? "team lit" : "team", tabindex: 0, role: "img", "aria-label": `${team.name}: ${places}` },
    node("polygon", { class: "reach", points: [...top, ...under].join(" ") }),
    node("path", { class: "line", d: line }),
    node("path", { class: "hit", d: line }),
    node("circle", { cx: right, cy: y(place), r: 3.5 }),
    node("text", { x: right + 11, y: y(place) + 4 }, name, node("title", {}, `${team.name}: ${places}`)));
  const choose = () => {
    chosen = team.id;
    for (const one of chart.querySelectorAll(".team")) one.classList.toggle("lit", one === group);
  };
  group.addEventListener("pointerenter", choose);
  group.addEventListener("focus", choose);
  return group;
}

if (chart) {
  drawHistory();
  let width = 0;
  new ResizeObserver(() => {
    const section = document.getElementById("history");
    if (points && !section.hidden && chart.clientWidth !== width) { width = chart.clientWidth; plot(); }
  }).observe(document.getElementById("main"));
}
