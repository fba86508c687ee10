// The page of `sim report`. The points come as columns (sweep_html.cpp): figures as 32-bit floats, the values that
// say which point it is as numbers into lists of texts. Everything below is a view of `points`.
'use strict';

function decode(text, Type) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return new Type(bytes.buffer);
}

const points = JSON.parse(document.getElementById('sweep-data').textContent);
const widths = {1: Uint8Array, 2: Uint16Array, 4: Uint32Array};
for (const dimension of points.dimensions) dimension.at = decode(dimension.at, widths[dimension.width]);
for (const metric of points.metrics) metric.at = decode(metric.at, Float32Array);
const scenario = points.scenario;
scenario.at = decode(scenario.at, widths[scenario.width]);
points.number = decode(points.number, Uint32Array);
points.error.at = decode(points.error.at, widths[points.error.width]);
const failed = row => points.error.values[points.error.at[row]] !== '';
const metric = name => points.metrics.find(one => one.name === name);
const dimension = name => points.dimensions.find(one => one.name === name);
const makespan = metric('makespan_us');

// ---- text and elements

function figure(value) {
  if (Number.isNaN(value)) return '';
  const size = Math.abs(value);
  return size >= 1000 ? value.toFixed(0) : size >= 1e-3 ? value.toPrecision(4) : size === 0 ? '0' : value.toExponential(2);
}
const show = (one, row) => figure(one.at[row] * one.scale);
const valueText = (one, row) => one.values[one.at[row]];
const label = one => `${one.label} [${one.unit}]`;

function choice(row) {  // what was chosen at a point, for people
  const schedule = dimension('schedule');
  const others = points.dimensions.filter(one => one.choice && one.swept && one !== schedule && valueText(one, row) !== '');
  return [...(schedule ? [valueText(schedule, row)] : []),
    ...others.map(one => `${one.label} ${valueText(one, row)}`)].join(', ') || `point ${points.number[row]}`;
}

function element(tag, attributes = {}, ...children) {
  const made = tag.startsWith('svg:') ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  made.append(...children);
  return made;
}
/// A long name that may be broken behind each of its parts.
const breakable = text => text.split(/(?<=[_.])/).flatMap((part, i) => i ? [element('wbr'), part] : [part]);
const replace = (id, ...children) => document.getElementById(id).replaceChildren(...children);

/// A labelled drop-down in the element `id`; `choices` are [value, text]; `title` is shown beside the pointer.
function picker(id, text, name, choices, chosen, onchange, title = text) {
  const select = element('select', {name, onchange},
    ...choices.map(([value, shown]) => element('option', {value}, shown)));
  select.value = chosen;
  document.getElementById(id).append(element('label', {title}, text + ' ', select));
  return select;
}

/// Least and most of a figure.
function range(rows, one) {
  return rows.reduce(([low, high], row) => [Math.min(low, one.at[row]), Math.max(high, one.at[row])], [Infinity, -Infinity]);
}

// Looks of the series 0, 1, ...: the first 40 all differ, and neighbours differ in colour and in shape (sim/report/look.hpp).
const colours = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c7a00', '#777777'];
const corners = [null, [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]], [[0, -1.3], [1.2, 0.9], [-1.2, 0.9]],
  [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]], [[0, 1.3], [1.2, -0.9], [-1.2, -0.9]]];
function mark(series, x, y, more) {
  const shape = corners[(series + Math.floor(series / colours.length)) % corners.length];
  const look = {fill: colours[series % colours.length], ...more};
  if (!shape) return element('svg:circle', {cx: x, cy: y, r: 5, ...look});
  return element('svg:polygon', {points: shape.map(([dx, dy]) => `${x + 5 * dx},${y + 5 * dy}`).join(' '), ...look});
}
