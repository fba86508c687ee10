// The table of all points: filtered by words and by column, sorted by a click on a column's head.
'use strict';

const figuresFirst = ['makespan_us', 'speedup', 'overlap_efficiency', 'exposed_comm_us', 'comm_cus', 'staging_bytes'];
const state = {sort: null, up: true, shown: 0, selects: [], rows: []};
const rowsAtOnce = 100;

/// Columns: the number of the point, what it is, its figures, and why it failed.
function tableColumns() {
  const figures = state.all.checked ? points.metrics : points.metrics.filter(one => figuresFirst.includes(one.name));
  return [
    {name: 'point', text: row => String(points.number[row]), key: row => points.number[row], numeric: true},
    ...points.dimensions.map(one => ({name: one.label, title: one.name, text: row => valueText(one, row), key: row => one.at[row], dimension: one})),
    ...figures.map(one => ({name: label(one), text: row => show(one, row), key: row => one.at[row], numeric: true})),
    ...(points.error.values.length > 1 ? [{name: 'error', text: row => points.error.values[points.error.at[row]],
      key: row => points.error.at[row], error: true}] : []),
  ];
}

/// Every word must occur in a value or in the error; numbers of points match whole.
function matcher(words) {
  const columns = [...points.dimensions, points.error];
  const tests = words.map(word => columns.map(one => one.values.map(value => value.toLowerCase().includes(word))));
  return row => tests.every((test, w) => columns.some((one, i) => test[i][one.at[row]]) || String(points.number[row]) === words[w]);
}

function chosenRows(columns) {
  const matches = matcher(state.words.value.toLowerCase().split(/\s+/).filter(Boolean));
  const fixed = state.selects.filter(([, select]) => select.value !== '').map(([one, select]) => [one, Number(select.value)]);
  const rows = [];
  for (let row = 0; row < points.number.length; ++row)
    if ((!state.failures.checked || failed(row)) && fixed.every(([one, value]) => one.at[row] === value) && matches(row)) rows.push(row);
  const column = columns.find(one => one.name === state.sort);
  if (column) {
    const sign = state.up ? 1 : -1;
    rows.sort((a, b) => {  // what has no figure comes last
      const x = column.key(a), y = column.key(b);
      return Number.isNaN(x) - Number.isNaN(y) || sign * (x - y) || a - b;
    });
  }
  return rows;
}

function moreRows() {
  const body = document.querySelector('#points tbody'), columns = state.columns;
  for (const row of state.rows.slice(state.shown, state.shown + rowsAtOnce))
    body.append(element('tr', failed(row) ? {class: 'failed'} : {},
      ...columns.map(one => element('td', one.numeric ? {class: 'n'} : {}, one.text(row)))));
  state.shown = Math.min(state.shown + rowsAtOnce, state.rows.length);
  document.getElementById('points-count').textContent = `${state.rows.length} of ${points.number.length} points` +
    (state.shown < state.rows.length ? `, the first ${state.shown} of them shown` : '');
  state.more.hidden = state.shown >= state.rows.length;
}

function drawRows() {
  state.rows = chosenRows(state.columns);
  state.shown = 0;
  document.querySelector('#points tbody').replaceChildren();
  moreRows();
}

function drawTable() {
  const kept = new Map(state.selects.map(([one, select]) => [one, select.value]));
  state.columns = tableColumns();
  state.selects = [];
  const heads = state.columns.map(column => {
    const head = element('th', {scope: 'col', title: column.title || column.name});
    head.append(element('button', {type: 'button', onclick: () => {
      state.up = state.sort === column.name ? !state.up : true;
      state.sort = column.name;
      for (const other of head.parentNode.cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', state.up ? 'ascending' : 'descending');
      drawRows();
    }}, ...breakable(column.name)));
    return head;
  });
  const filters = state.columns.map(column => {
    const cell = element('td');
    if (!column.dimension || column.dimension.values.length > 1000) return cell;
    const select = element('select', {'aria-label': 'only ' + column.name, name: 'only-' + column.dimension.name, onchange: drawRows},
      element('option', {value: ''}, 'any'),
      ...column.dimension.values.map((value, i) => element('option', {value: i}, value || '(none)')));
    select.value = kept.get(column.dimension) || '';
    state.selects.push([column.dimension, select]);
    cell.append(select);
    return cell;
  });
  replace('points', element('table', {}, element('thead', {}, element('tr', {}, ...heads), element('tr', {class: 'filters'}, ...filters)),
    element('tbody')));
  drawRows();
}

function startTable() {
  const bar = document.getElementById('points-pickers');
  state.words = element('input', {type: 'search', name: 'words', 'aria-label': 'filter', placeholder: 'filter: every word must occur', oninput: drawRows});
  state.failures = element('input', {type: 'checkbox', name: 'failures', onchange: drawRows});
  state.all = element('input', {type: 'checkbox', name: 'all-figures', onchange: drawTable});
  state.more = element('button', {type: 'button', id: 'points-more', onclick: moreRows}, `${rowsAtOnce} more`);
  bar.append(state.words, element('label', {}, state.all, ' all figures'));
  if (points.error.values.length > 1) bar.append(element('label', {}, state.failures, ' failed points only'));
  bar.append(element('span', {id: 'points-count', 'aria-live': 'polite'}));
  document.getElementById('points').after(state.more);
  drawTable();
}

startTable();
