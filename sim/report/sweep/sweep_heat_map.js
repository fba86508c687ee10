// Heat map over two dimensions; colours are cividis (Nuñez, Anderton, Renslow 2018), which looks the same to the
// colour-blind.
'use strict';

const cividis = [[0, 34, 78], [52, 69, 108], [102, 105, 112], [148, 142, 119], [196, 182, 107], [254, 232, 56]];

function heatColour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (cividis.length - 1), low = Math.min(Math.floor(at), cividis.length - 2);
  return cividis[low].map((from, i) => Math.round(from + (cividis[low + 1][i] - from) * (at - low)));
}

/// The best row for each pair of values, by y and then x.
function heatMap(x, y, shown, fixed) {
  const cells = new Int32Array(x.values.length * (y ? y.values.length : 1)).fill(-1);
  const sign = shown.better === 'more' ? -1 : 1;
  rows: for (let row = 0; row < points.number.length; ++row) {
    const value = shown.at[row];
    if (Number.isNaN(value)) continue;
    for (const [one, wanted] of fixed) if (one.at[row] !== wanted) continue rows;
    const cell = (y ? y.at[row] * x.values.length : 0) + x.at[row];
    if (cells[cell] < 0 || sign * value < sign * shown.at[cells[cell]]) cells[cell] = row;
  }
  return cells;
}

/// Whether each value of `leader` comes with one value of `one` only: zipped axes.
function follows(one, leader) {
  const value = new Map();
  for (let row = 0; row < points.number.length; ++row) {
    const at = leader.at[row];
    if (value.has(at) && value.get(at) !== one.at[row]) return false;
    value.set(at, one.at[row]);
  }
  return true;
}

function drawHeatMap() {
  const x = dimension(heat.x.value), y = heat.y.value === heat.x.value ? null : dimension(heat.y.value);
  const shown = metric(heat.value.value);
  for (const [one, select] of heat.fixed) select.disabled = follows(one, x) || y && follows(one, y);
  const fixed = heat.fixed.filter(([, select]) => select.value !== '' && !select.disabled)
    .map(([one, select]) => [one, Number(select.value)]);
  const cells = heatMap(x, y, shown, fixed), rows = [...cells].filter(row => row >= 0);
  const [low, high] = range(rows, shown);
  const small = x.values.length > 24, best = shown.better === 'more' ? high : low;
  const colourOf = value => heatColour(high > low ? (value - low) / (high - low) : 0.5);
  const detail = row => `${label(shown)}: ${show(shown, row)} by ${choice(row)} (${scenario.values[scenario.at[row]]}), ` +
    `makespan ${show(makespan, row)} us, point ${points.number[row]}`;
  const cell = (yi, xi) => {
    const row = cells[yi * x.values.length + xi];
    if (row < 0) return element('td', {class: 'none'}, '');
    const [r, g, b] = colourOf(shown.at[row]), dark = 0.3 * r + 0.59 * g + 0.11 * b < 128;
    return element('td', {title: detail(row), tabindex: '-1', style: `background:rgb(${r},${g},${b});color:${dark ? '#fff' : '#000'}`,
      'data-row': row, ...(shown.at[row] === best ? {class: 'best'} : {})}, small ? '' : show(shown, row));
  };
  const ys = y ? y.values : ['all'];
  const table = element('table', {class: small ? 'heat small' : 'heat'},
    element('caption', {}, `best ${label(shown)}, ${y ? y.label : 'all'} down, ${x.label} across`),
    element('thead', {}, element('tr', {}, element('th', {}, ...breakable((y ? y.label : '') + ' \\ ' + x.label)),
      ...x.values.map(value => element('th', {scope: 'col'}, ...breakable(value || '(none)'))))),
    element('tbody', {}, ...ys.map((value, yi) => element('tr', {}, element('th', {scope: 'row'}, ...breakable(value || '(none)')),
      ...x.values.map((_, xi) => cell(yi, xi))))));
  const note = element('p', {class: 'note', 'aria-live': 'polite'}, 'Point at a cell, or move with the arrow keys.');
  const tell = event => {
    const row = event.target.dataset && event.target.dataset.row;
    if (row !== undefined) note.textContent = detail(Number(row));
  };
  table.addEventListener('mouseover', tell);
  table.addEventListener('focusin', tell);
  table.addEventListener('keydown', event => {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    const from = event.target.closest('td');
    if (!step || !from) return;
    event.preventDefault();
    const line = table.tBodies[0].rows[from.parentNode.sectionRowIndex + step[0]], to = line && line.cells[from.cellIndex + step[1]];
    if (to && to.tagName === 'TD') to.focus();
  });
  const first = table.querySelector('td[data-row]');
  if (first) first.tabIndex = 0;
  const scale = element('div', {class: 'scale'}, rows.length ? figure(low * shown.scale) : '', element('span'),
    (rows.length ? figure(high * shown.scale) : '') + ' ' + shown.unit);
  replace('heat-map', scale, element('div', {class: 'scroll'}, table), note);
}

const heat = {fixed: []};
function startHeatMap() {
  if (!points.dimensions.length) {
    replace('heat-map', element('p', {class: 'note'}, 'Nothing was varied.'));
    return;
  }
  const axes = points.dimensions.map(one => [one.name, one.name]);
  heat.x = picker('heat-pickers', 'across', 'heat-x', axes, points.first[0], drawHeatMap);
  heat.y = picker('heat-pickers', 'down', 'heat-y', axes, points.first[1], drawHeatMap);
  heat.value = picker('heat-pickers', 'value', 'heat-value',
    points.metrics.filter(one => one.better !== 'neither').map(one => [one.name, label(one)]), 'speedup', drawHeatMap);
  // The best over several choices is a choice; the best over several operators or machines would mix them.
  const first = scenario.at.indexOf(0);
  for (const one of points.dimensions.filter(one => one.swept))
    heat.fixed.push([one, picker('heat-pickers', one.label, 'heat-fixed-' + one.name,
      [...(one.choice ? [['', 'any (the best)']] : []), ...one.values.map((value, i) => [i, value || '(none)'])],
      one.choice ? '' : one.at[first], drawHeatMap, one.name)]);
  drawHeatMap();
}

startHeatMap();
