"use strict";

let data = JSON.parse(document.getElementById("data").textContent);

// live is set where the page is served while what it shows goes on: whether the shown time
// follows the run.
const live = data.live ? { follow: true } : null;

// state is what is shown. t is the chosen time in seconds, hover the time under the
// pointer or null.
const state = { run: 0, model: 0, t: 0, hover: null, filter: -1, over: new Set() };

const byId = (id) => document.getElementById(id);

// Every text goes through a text node: names come from users.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// The name space is that of the icons, so that no address stands in the page.
const svgNames = document.querySelector("svg").namespaceURI;

function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(svgNames, tag), attributes, children);
}

const current = () => data.runs[state.run];
const course = () => current().course;
const color = (variant) => `var(--v${variant % 8})`;

// letter is the short name of a variant on the map: A to Z, then A2 and so on.
function letter(variant) {
  return String.fromCharCode(65 + (variant % 26)) + (variant >= 26 ? Math.floor(variant / 26) + 1 : "");
}

// lastAt is the index of the last of the sorted values that is at most x, or -1.
function lastAt(values, x) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// beginning is the time of day of 0 as Unix time; 0 where times are those of a run.
const beginning = () => (course() && course().start) || 0;

const two = (n) => String(n).padStart(2, "0");

// clock writes a time as m:ss, or h:mm:ss in runs of an hour and more; that of a live
// cluster as the time of day.
function clock(t, length) {
  const s = Math.round(t);
  const begin = beginning();
  if (begin) {
    const at = new Date((begin + s) * 1000);
    return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  }
  if (length < 3600) return `${Math.floor(s / 60)}:${two(s % 60)}`;
  return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

// tickClock leaves the seconds out where all ticks are whole minutes.
function tickClock(t, step, length) {
  if (length < 3600 && !beginning()) return clock(t, length);
  const text = clock(t, length);
  return step % 60 === 0 ? text.slice(0, -3) : text;
}

function digits(value, n) {
  if (value === undefined || value === null) return "-";
  if (value === 0) return "0";
  const places = Math.max(0, n - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(places, 6) });
}

function latency(ms) {
  if (ms === null || ms === undefined) return "-";
  return ms >= 999.5 ? `${digits(ms / 1000, 3)} s` : `${digits(ms, 3)} ms`;
}

// percent rounds down: 100 % is all of them.
function percent(share) {
  if (share === null || share === undefined) return "-";
  return `${(Math.floor(share * 1e4 + 1e-6) / 100).toLocaleString("en")}%`;
}

const money = (value) => `$${digits(value, value < 100 ? 3 : 4)}`;
const rate = (value) => digits(value, 3);

// niceStep is a step of 1, 2 or 5 times a power of ten with which a range has at most n
// steps.
function niceStep(range, n) {
  const rough = range / n;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  for (const factor of [1, 2, 5, 10]) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

function niceTimeStep(range, n) {
  for (const step of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400]) {
    if (range / step <= n) return step;
  }
  return 86400 * Math.ceil(range / 86400 / n);
}

const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
