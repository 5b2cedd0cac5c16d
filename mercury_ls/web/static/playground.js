"use strict";

const at = (id) => document.getElementById(id);
const STEPS = [0.3, 0.6, 0.8, 0.95];
const PAUSE_MS = 120;
const REPLAY_MS = 260;
const LOADING_MS = 1000;
const MOST_EDITS = 8;
const LINES_BEFORE = 14;
const LINES_AFTER = 6;
const UNREACHABLE = "The server does not answer. Is it still running?";

const SAMPLE = `from dataclasses import dataclass


@dataclass
class Square:
    width: float

    def area(self):
        return self.width * self.width

    def perimeter(self):
        return 4 * self.width


@dataclass
class Rectangle:
    width: float
    height: float

    def area(self):
        `;

let token = "";
let asking = null; // an AbortController
let frames = [];
let shown = -1;
let offered = null; // {id, text, cursor}: what Tab takes, and where
let asked = null; // the text and cursor that the frames are about
let typing = 0;
let replay = 0;
let edits = [];
let settled = SAMPLE;

// The token comes in the address's fragment, which browsers do not send, and stays in this tab.

function signedIn() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  token = sessionStorage.getItem("token") || "";
}

async function call(path, body, signal) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  if (body) headers["content-type"] = "application/json";
  const sent = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal };
  const answer = await fetch(path, sent).catch(unreachable);
  if (answer.ok) return answer;
  if (answer.status === 401) {
    askForToken();
    throw new Error("This page needs the server's token.");
  }
  const problem = await answer.json().catch(() => null);
  throw new Error(problem?.error?.message || `${path}: status ${answer.status}`);
}

function unreachable(error) {
  throw error.name === "AbortError" ? error : new Error(UNREACHABLE);
}

function askForToken() {
  at("refused").textContent = token ? "This is not the server's token." : "";
  if (!at("login").hidden) return;
  at("login").hidden = false;
  at("token").focus();
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(unreachable);
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
  }
}

// Offsets of the server count code points, those of the page UTF-16 units.

const codePoints = (text) => [...text].length;

function request() {
  const text = at("text").value;
  const cursor = at("text").selectionStart;
  const other = at("other").value;
  asked = { text, cursor };
  return {
    text,
    cursor: codePoints(text.slice(0, cursor)),
    path: at("path").value,
    effort: at("effort").value,
    deadline_ms: Number(at("deadline").value) || null,
    others: other.trim() ? [{ path: at("other-path").value, text: other }] : [],
    edits,
  };
}

async function ask() {
  clearTimeout(typing);
  stopReplay();
  asking?.abort();
  const mine = (asking = new AbortController());
  offered = null;
  frames = [];
  at("passes").replaceChildren();
  settle();
  try {
    const answer = await call("/playground/watch", request(), mine.signal);
    for await (const frame of events(answer)) {
      if (mine !== asking) return;
      if (frame.error) throw new Error(frame.error.message);
      if (frame.context !== undefined || !frame.step) context(frame.context);
      if (!("step" in frame) && !frame.final) continue;
      frames.push(frame);
      show(frames.length - 1);
      if (frame.final) conclude(frame);
    }
    if (mine === asking && !frames.at(-1)?.final) say(UNREACHABLE);
  } catch (error) {
    if (mine === asking && error.name !== "AbortError") say(error.message);
  }
}

function conclude(frame) {
  if (frame.text) offered = { id: frame.id, text: frame.text, cursor: asked.cursor };
  passes();
  show(frames.length - 1);
}

// What is drawn: the text around the cursor with the slots of one pass in their place.

function level(probability) {
  return STEPS.filter((bound) => probability >= bound).length;
}

function piece(text, ...names) {
  const span = document.createElement("span");
  span.className = names.filter(Boolean).join(" ");
  span.textContent = text;
  return span;
}

function drawnSlot(slot) {
  if (!slot.text && !slot.probability) return piece("▒", "slot", "masked");
  const probability = slot.probability || 0;
  const span = piece(slot.text, "slot", `p${level(probability)}`, slot.revised && "revised", !slot.settled && "open");
  span.title = `${JSON.stringify(slot.text)} ${(100 * probability).toFixed(1)} %`
    + (slot.revised ? ", revised" : "") + (slot.settled ? ", settled" : "");
  return span;
}

function drawn(frame) {
  if (frame.slots?.length && !(frame.final && frame.text)) return frame.slots.map(drawnSlot);
  if (!frame.final) return [piece(frame.draft || "", "slot")];
  const last = [...frames].reverse().find((each) => each.slots?.length);
  return last && last.slots.map((slot) => slot.text).join("").startsWith(frame.text)
    ? upTo(last.slots, frame.text.length)
    : [piece(frame.text || "", "slot", "p3")];
}

function upTo(slots, length) {
  const found = [];
  for (const slot of slots) {
    if (length <= 0) break;
    found.push(drawnSlot({ ...slot, text: slot.text.slice(0, length) }));
    length -= slot.text.length;
  }
  return found;
}

function show(index) {
  if (index < 0 || index >= frames.length) return;
  shown = index;
  const frame = frames[index];
  const before = asked.text.slice(0, asked.cursor).split("\n").slice(-LINES_BEFORE).join("\n");
  const after = asked.text.slice(asked.cursor).split("\n").slice(0, LINES_AFTER).join("\n");
  const view = at("view");
  view.replaceChildren(piece(before, "around"), piece("", "caret"), ...drawn(frame), piece(after, "around"));
  view.querySelector(".caret").scrollIntoView({ block: "nearest" });
  for (const button of at("passes").children)
    button.setAttribute("aria-current", String(Number(button.dataset.index) === index));
  figures(frame);
}

function figures(frame) {
  const last = frames[frames.length - 1];
  const seconds = last.ms / 1000;
  const rows = { pass: `${frame.step || 0} of ${last.step || 0}`, time: `${frame.ms.toFixed(1)} ms` };
  if (last.final) {
    const settled = (last.slots || []).filter((slot) => slot.settled).length || last.tokens || 0;
    rows.tokens = `${settled} settled in ${last.ms.toFixed(1)} ms`
      + (settled && seconds ? `, ${Math.round(settled / seconds)} a second; ${last.tokens || 0} are shown` : "");
    rows["likely to be taken"] = last.p_accept ? `${(100 * last.p_accept).toFixed(0)} %` : "–";
    if (last.sent) rows["sent elsewhere"] = last.sent;
    say(last.text ? "Tab takes it." : `Nothing is suggested: ${last.silence}`);
  }
  fill(at("figures"), rows);
}

function passes() {
  at("passes").replaceChildren(
    ...frames.map((frame, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.index = index;
      button.textContent = frame.final ? "shown" : frame.step;
      button.setAttribute("aria-label", frame.final ? "what is shown" : `pass ${frame.step}`);
      button.title = `${frame.ms.toFixed(1)} ms`;
      button.addEventListener("click", () => (stopReplay(), show(index)));
      return button;
    }),
  );
}

function context(known) {
  const place = at("context").querySelector("div");
  if (!known) {
    place.replaceChildren(piece("The model was not asked.", "around"));
    return;
  }
  const parts = [
    [`${known.path}, ${codePoints(known.before)} characters before the cursor, `
      + `${codePoints(known.after)} after it`, `${known.before}█${known.after}`],
    ...(known.snippets || []).map((each) => [`related code of ${each.path}`, each.text]),
    ...(known.edits || []).map((each) => [`an edit in ${each.path}, line ${each.line + 1}`,
      `- ${each.before.trimEnd().replaceAll("\n", "\n- ")}\n+ ${each.after.trimEnd().replaceAll("\n", "\n+ ")}`]),
  ];
  place.replaceChildren(...parts.flatMap(([title, text]) => {
    const code = document.createElement("pre");
    code.textContent = text;
    return [piece(title), code];
  }));
}

function fill(list, rows) {
  list.replaceChildren(...Object.entries(rows).flatMap(([name, value]) => {
    const term = document.createElement("dt");
    const said = document.createElement("dd");
    term.textContent = name;
    said.textContent = value;
    return [term, said];
  }));
}

function say(text) {
  at("verdict").textContent = text;
}

function play() {
  stopReplay();
  let index = 0;
  const next = () => {
    show(index++);
    if (index < frames.length) replay = setTimeout(next, REPLAY_MS);
  };
  if (frames.length) next();
}

function stopReplay() {
  clearTimeout(replay);
}

// Typing: what changed since the last pause becomes an edit, as an editor would tell it.

function settle() {
  const now = at("text").value;
  const change = difference(settled.split("\n"), now.split("\n"));
  settled = now;
  if (change) edits = [...edits, change].slice(-MOST_EDITS);
}

function difference(before, after) {
  let first = 0;
  while (first < Math.min(before.length, after.length) && before[first] === after[first]) first++;
  let last = 0;
  const most = Math.min(before.length, after.length) - first;
  while (last < most && before[before.length - 1 - last] === after[after.length - 1 - last]) last++;
  const lines = (text) => text.slice(first, text.length - last).map((line) => `${line}\n`).join("");
  const [old, now] = [lines(before), lines(after)];
  return old === now ? null : { line: first, before: old, after: now };
}

function take() {
  const { text, cursor } = offered;
  tell("accept");
  at("text").setSelectionRange(cursor, cursor);
  document.execCommand("insertText", false, text); // the one way that the browser can undo
}

function drop() {
  tell("reject");
  say("Dropped.");
}

function tell(user_action) {
  call("/feedback", { request_id: offered.id, user_action }).catch(() => {});
  offered = null;
}

function moved() {
  const box = at("text");
  if (!offered || document.activeElement !== box || box.selectionStart === offered.cursor) return;
  offered = null;
  say("The cursor has moved: Ctrl+Enter asks here.");
}

function keyed(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
  else if (event.altKey && event.key === "ArrowLeft") (stopReplay(), show(shown - 1));
  else if (event.altKey && event.key === "ArrowRight") (stopReplay(), show(shown + 1));
  else if (event.altKey && event.key.toLowerCase() === "r") play();
  else if (event.key === "Tab" && !event.shiftKey && event.target === at("text") && offered
    && at("text").selectionStart === offered.cursor) take();
  else if (event.key === "Escape" && offered) drop();
  else return;
  event.preventDefault();
}

// This machine's statistics.

const bytes = (count) => `${Math.round(count / 2 ** 20)} MiB`;

async function statistics() {
  const found = await (await call("/playground/statistics")).json().catch(() => null);
  if (!found) return;
  const rows = { "answers measured": found.answers };
  for (const [name, ms] of Object.entries(found.latency_ms)) rows[name] = `${ms.toFixed(1)} ms`;
  rows.memory = `${bytes(found.resident_bytes)}` + (found.engine?.bytes ? `, the engine ${bytes(found.engine.bytes)}` : "");
  if (found.engine) rows.model = `${found.engine.model}, ${found.engine.device}`;
  if (found.engine) rows.context = `${found.engine.context_tokens} tokens`;
  rows.up = `${Math.round(found.uptime_s / 60)} min`;
  fill(at("latency"), rows);
  at("where").textContent = found.where.replaceAll("`", "");
  at("days").replaceChildren(days(found.rows));
}

function unknown(error) {
  at("where").textContent = error.message;
}

const COLUMNS = ["shown", "typedThrough", "accepted", "rejected", "characters"];
const NAMES = { typedThrough: "typed through", characters: "characters saved", inline: "inline", nextEdit: "next edits" };

function days(rows) {
  if (!rows.length) return piece("Nothing has been counted yet.", "around");
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  const heads = ["day", "language", "kind", ...COLUMNS.map((name) => NAMES[name] || name), "taken"];
  heads.forEach((name, index) => {
    const cell = document.createElement("th");
    cell.textContent = name;
    if (index > 2) cell.className = "number";
    head.append(cell);
  });
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of [row.day, row.language, NAMES[row.kind]]) line.insertCell().textContent = value;
    for (const name of COLUMNS) {
      const cell = line.insertCell();
      cell.className = "number";
      cell.textContent = (row[name] || 0).toLocaleString("en");
    }
    const share = document.createElement("meter");
    share.value = row.shown ? (row.accepted + row.typedThrough) / row.shown : 0;
    share.title = `${Math.round(100 * share.value)} % of what was shown`;
    line.insertCell().append(share);
  }
  return table;
}

// The frame around it.

function choose(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    at(tab.getAttribute("aria-controls")).hidden = !chosen;
    if (chosen) tab.focus();
  }
  if (name === "statistics") statistics().catch(unknown);
}

function dark() {
  const now = document.documentElement.dataset.theme
    || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  localStorage.setItem("theme", document.documentElement.dataset.theme = now === "dark" ? "light" : "dark");
}

async function begin() {
  signedIn();
  if (localStorage.getItem("theme")) document.documentElement.dataset.theme = localStorage.getItem("theme");
  at("text").value = SAMPLE;
  document.addEventListener("keydown", keyed);
  at("text").addEventListener("input", () => {
    clearTimeout(typing);
    asking?.abort();
    offered = null;
    say(at("live").checked ? "…" : "Ctrl+Enter asks.");
    if (at("live").checked) typing = setTimeout(ask, PAUSE_MS);
  });
  at("ask").addEventListener("click", ask);
  for (const id of ["path", "effort", "deadline", "other-path", "other"]) at(id).addEventListener("change", ask);
  document.addEventListener("selectionchange", moved);
  at("theme").addEventListener("click", dark);
  at("login").addEventListener("submit", (event) => {
    event.preventDefault();
    token = at("token").value.trim();
    sessionStorage.setItem("token", token);
    about();
  });
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const name = tab.id.slice("tab-".length);
    tab.addEventListener("click", () => choose(name));
    tab.addEventListener("keydown", (event) => {
      if (["ArrowLeft", "ArrowRight"].includes(event.key) && !event.altKey)
        choose(name === "draft" ? "statistics" : "draft");
    });
  }
  setInterval(() => at("statistics").hidden || statistics().catch(unknown), 5000);
  at("text").focus();
  at("text").setSelectionRange(SAMPLE.length, SAMPLE.length);
  await about();
}

async function about() {
  try {
    const found = await (await call("/playground/statistics")).json();
    at("model").textContent = found.engine ? `${found.engine.model} · ${found.engine.device}` : "the engine is loading";
    if (!at("login").hidden) at("text").focus();
    at("login").hidden = true;
    if (!found.engine) setTimeout(about, LOADING_MS);
    ask();
  } catch (error) {
    at("model").textContent = error.message;
  }
}

begin();
