// Draws a page of the program from its data (page.hpp says which blocks there are). Charts: Observable Plot.
'use strict';
const page = JSON.parse(document.getElementById('page-data').textContent);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (typeof value === 'function') made[name] = value;
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
/// A long name that may be broken behind each of its parts.
const breakable = text => String(text).split(/(?<=[_/]|\.(?=[a-z]))/).flatMap((part, i) => i ? [element('wbr'), part] : [part]);

function figureText(value) {
  if (Number.isNaN(value)) return '';
  const size = Math.abs(value);
  return size >= 1000 ? value.toFixed(0) : size >= 1e-3 ? value.toPrecision(4) : size === 0 ? '0' : value.toExponential(2);
}

// ---- tables

const rowsAtOnce = 100;

/// Sorted by a click on a head, filtered by words and drop-downs, shown a hundred rows at a time. A column:
/// {name, title, text(row), key(row), numeric, values, at(row), cell(row)}; one with `values` gets a drop-down.
function table(columns, count, options = {}) {
  const state = {column: null, up: true, shown: 0, rows: []}, selects = new Map();
  const body = element('tbody'), told = element('span', {class: 'count', 'aria-live': 'polite'});
  const text = columns.map(one => row => one.text(row).toLowerCase());
  const more = element('button', {type: 'button', class: 'more', onclick: () => grow()}, `${rowsAtOnce} more`);
  const words = element('input', {type: 'search', name: 'words', 'aria-label': 'filter', oninput: () => fill(),
    placeholder: 'filter: every word must occur'});
  const cellOf = (one, row) => {
    const cell = one.cell ? one.cell(row) : one.text(row), attributes = {class: one.numeric ? 'n' : 't'};
    if (typeof cell !== 'object') return element('td', attributes, ...(one.numeric ? [cell] : breakable(cell)));
    if (cell.share > 0) attributes.style = `background:rgba(var(--good),${(0.08 + 0.52 * Math.min(cell.share, 1)).toFixed(2)})`;
    return element('td', {...attributes, title: cell.tip}, cell.text, ...(cell.small ? [element('small', {}, ...breakable(cell.small))] : []));
  };
  const grow = () => {
    for (const row of state.rows.slice(state.shown, state.shown += rowsAtOnce))
      body.append(element('tr', {class: options.bad && options.bad(row) && 'bad'}, ...columns.map(one => cellOf(one, row))));
    more.hidden = state.shown >= state.rows.length;
    told.textContent = `${state.rows.length} of ${count} rows` + (more.hidden ? '' : `, the first ${state.shown} of them shown`);
  };
  const fill = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean), rows = [];
    const only = [...selects].filter(([, select]) => select.value !== '').map(([one, select]) => [one, Number(select.value)]);
    for (let row = 0; row < count; ++row)
      if (only.every(([one, value]) => one.at(row) === value) && (!options.keep || options.keep(row)) &&
          wanted.every(word => text.some(of => of(row).includes(word)))) rows.push(row);
    const {column, up} = state;
    if (column) rows.sort((a, b) => {  // rows without a value come last
      const x = column.key(a), y = column.key(b), none = one => Number.isNaN(one) || one === '';
      if (none(x) || none(y)) return none(x) - none(y) || a - b;
      return (up ? 1 : -1) * (typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y) || a - b;
    });
    Object.assign(state, {rows, shown: 0});
    body.replaceChildren();
    grow();
  };
  const heads = columns.map(one => {
    const head = element('th', {scope: 'col', tabindex: 0, title: one.title, class: one.numeric && 'n'}, ...breakable(one.name));
    const sort = () => {
      state.up = state.column === one ? !state.up : true;
      state.column = one;
      for (const other of heads) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', state.up ? 'ascending' : 'descending');
      fill();
    };
    head.onclick = sort;
    head.onkeydown = event => event.key === 'Enter' && sort();
    return head;
  });
  const bar = element('div', {class: 'pickers'}, words, ...(options.controls || []));
  for (const one of columns.filter(one => one.values && one.values.length > 1 && one.values.length < 1000))
    selects.set(one, picker(bar, one.name, 'only-' + one.title, [['', 'any'], ...one.values.map((value, i) => [i, value])], '', fill));
  bar.append(told);
  bar.hidden = count <= 12 && !options.controls;
  fill();
  const made = element('div', {}, bar, element('div', {class: 'scroll'},
    element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body)), more);
  made.refill = fill;
  return made;
}

const isNumber = text => /^[-+]?\d[\d.]*(e[-+]?\d+)?( ?[%a-zA-Z/]+| - [\d.]+)?$/.test(text);

/// A table of rows of cells: texts, or {text, small, tip, share}, whose share is the strength of its colour.
function plainTable(head, rows) {
  const textOf = cell => typeof cell === 'object' ? [cell.text, cell.small || ''].join(' ').trim() : cell;
  return table(head.map((name, i) => {
    const valueOf = row => typeof rows[row][i] === 'object' ? rows[row][i].text : rows[row][i];
    const some = rows.map((_, row) => valueOf(row)).filter(Boolean), numeric = some.length > 0 && some.every(isNumber);
    return {name, numeric, text: row => textOf(rows[row][i]), cell: row => rows[row][i],
      key: row => numeric ? parseFloat(valueOf(row)) : valueOf(row)};
  }), rows.length);
}

// ---- charts

/// Eight colours that stay apart for colour-blind readers (Okabe and Ito, jfly.uni-koeln.de/color), on white and on black.
const colours = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c7a00', '#808080'];
const shapes = ['circle', 'square', 'triangle', 'diamond', 'star', 'cross', 'wye'];
/// Scales in which each of up to 56 series has a colour and a shape of its own.
const looks = names => ({
  color: {type: 'categorical', domain: names, range: names.map((_, i) => colours[i % colours.length])},
  symbol: {domain: names, range: names.map((_, i) => shapes[i % shapes.length]), legend: names.length > 1},
});

const roomFor = (texts, most = 320) => Math.min(most, 16 + 7 * Math.max(0, ...texts.map(text => text.length)));
const clip = (text, width) => 16 + 7 * text.length > width ? text.slice(0, Math.floor((width - 16) / 7) - 1) + '…' : text;
const plot = options => Plot.plot({marginTop: 28, marginBottom: 44, ...options, style: {fontSize: '12px', background: 'none'}});
const extent = values => [d3.min(values), d3.max(values)];

const figures = [];
function drawFigure(figure) {
  const width = figure.clientWidth;
  if (!width || width === figure.drawn) return;
  figure.drawn = width;
  figure.replaceChildren(figure.draw(width));
}
const drawFigures = () => figures.filter(one => one.isConnected).forEach(drawFigure);
/// A place for a chart, drawn anew for each width.
function figure(draw) {
  const made = element('figure');
  made.draw = draw;
  figures.push(made);
  return made;
}

/// A logarithmic axis of `length` pixels on which labels are at least `gap` pixels apart.
function logAxis(values, length, label, gap = 48) {
  const [low, high] = extent(values), domain = [low / 1.15, high * 1.15];
  for (const steps of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const ticks = d3.range(Math.floor(Math.log10(domain[0])), Math.ceil(Math.log10(domain[1])) + 1)
      .flatMap(decade => steps.map(step => step * 10 ** decade)).filter(one => one >= domain[0] && one <= domain[1]);
    const least = gap / length * Math.log(domain[1] / domain[0]);
    if (ticks.length > 1 && ticks.every((one, i) => i === 0 || Math.log(one / ticks[i - 1]) >= least))
      return {type: 'log', domain, label, ticks, tickFormat: one => String(Number(one.toPrecision(6)))};
  }
  return {type: 'log', domain, label, ticks: 5};
}

const charts = {
  /// {names, points: [[measured, predicted, place in names, text]], unit}
  scatter: ({names, points, unit}) => width => {
    const rows = points.map(([measured, predicted, by, text]) => ({measured, predicted, by: names[by], title: `${text}\nmeasured ${
      figureText(measured)} ${unit}, predicted ${figureText(predicted)} ${unit}, ${(100 * (predicted / measured - 1)).toFixed(1)} %`}));
    const side = Math.min(width, 640), axis = logAxis(rows.flatMap(one => [one.measured, one.predicted]), side - 90);
    return plot({width: side, height: side - 20, marginLeft: 64, marginRight: 40, ...looks(names), grid: true,
      x: {...axis, label: `measured [${unit}]`}, y: {...axis, label: `predicted [${unit}]`},
      marks: [Plot.areaY(axis.domain, {x: one => one, y1: one => 0.9 * one, y2: one => 1.1 * one, fill: 'currentColor', fillOpacity: 0.1, clip: true}),
        Plot.line(axis.domain, {x: one => one, y: one => one, stroke: 'currentColor', strokeOpacity: 0.5}),
        Plot.dot(rows, {x: 'measured', y: 'predicted', fill: 'by', symbol: 'by', r: 3.5, fillOpacity: 0.7, title: 'title', tip: true})]});
  },
  /// {errors}: cases by signed error, in bins of 2 %; the outermost bins are open.
  histogram: ({errors}) => width => plot({width: Math.min(width, 800), height: 240, marginLeft: 50, grid: true,
    x: {label: 'predicted / measured − 1 [%] (ends: all beyond)', domain: [-31, 31], ticks: 7}, y: {label: 'cases'},
    marks: [Plot.rectY(errors, Plot.binX({y: 'count'}, {x: one => Math.max(-30, Math.min(30, 100 * one)),
      thresholds: d3.range(-31, 32, 2), fill: colours[0], tip: {format: {x: true, y: true}}})), Plot.ruleX([0]), Plot.ruleY([0])]}),
  /// {spans: [[track, kind, start, end, name, pale]], unit}
  timeline: ({spans, unit}) => width => {
    const rows = spans.map(([track, kind, start, end, name, pale]) => ({track, kind, start, end, pale,
      title: `${name}: ${figureText(start)} to ${figureText(end)} ${unit}`}));
    const tracks = [...new Set(rows.map(one => one.track))], kinds = [...new Set(rows.map(one => one.kind))].sort();
    return plot({width, height: 70 + 20 * tracks.length, marginLeft: roomFor(tracks), marginRight: 30,
      x: {label: `time [${unit}]`}, y: {domain: tracks, label: null, tickSize: 0}, color: {...looks(kinds).color, legend: true},
      marks: [Plot.barX(rows, {x1: 'start', x2: 'end', y: 'track', fill: 'kind', stroke: 'kind', fillOpacity: one => one.pale ? 0.35 : 1,
        strokeWidth: 0.5, insetTop: 1, insetBottom: 1, title: 'title', tip: true})]});
  },
  /// {parts, bars: [[name, [value of each part], text behind it]], label}: stacked; negative parts go left of 0.
  bars: ({parts, bars, label, grey = []}) => width => {
    const names = bars.map(one => one[0]), ends = bars.map(one => one[2]), left = roomFor(names, width * 0.38);
    const rows = bars.flatMap(([name, values]) => values.map((value, i) => ({name, part: parts[i], value,
      title: `${name}\n${parts[i]}: ${figureText(value)}`}))).filter(one => one.value !== 0 && !Number.isNaN(one.value));
    const look = parts.map((part, i) => grey.includes(part) ? '#a7b0ba' : colours[(i + colours.length - grey.length) % colours.length]);
    const up = bars.map(([name, values, text]) => ({name, text, value: d3.sum(values, one => Math.max(one, 0))}));
    const sums = bars.map(([name, values]) => ({name, value: d3.sum(values)}));
    return plot({width, height: 76 + 26 * bars.length, marginLeft: left, marginRight: roomFor(ends, width * 0.3),
      x: {label, grid: true, ticks: Math.max(2, width / 130)}, y: {domain: names, label: null, tickSize: 0, tickFormat: name => clip(name, left)},
      color: {domain: parts, range: look, legend: true},
      marks: [Plot.barX(rows, {x: 'value', y: 'name', fill: 'part', title: 'title', insetTop: 1, insetBottom: 1, tip: true}),
        Plot.tickX(sums, {x: 'value', y: 'name', stroke: 'currentColor', strokeWidth: 2}),
        Plot.text(up, {x: 'value', y: 'name', text: 'text', textAnchor: 'start', dx: 6})]});
  },
};

/// A labelled drop-down in `bar`; `choices` are [value, text]; `title` is shown beside the pointer.
function picker(bar, text, name, choices, chosen, onchange, title = text) {
  const select = element('select', {name, onchange}, ...choices.map(([value, shown]) => element('option', {value}, shown)));
  select.value = chosen;
  bar.append(element('label', {title}, text + ' ', select));
  return select;
}

// ---- blocks

const blocks = {
  heading: ({heading, note, id}) => [element('h2', {id}, heading), ...(note ? [element('p', {class: 'note'}, note)] : [])],
  text: ({text, id, bad}) => [element('p', {id, class: bad && 'bad'}, text)],
  list: ({list}) => [element('ul', {}, ...list.map(one => element('li', {}, one)))],
  facts: ({facts}) => [element('dl', {}, ...facts.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]))],
  code: ({code}) => [element('pre', {}, code)],
  table: ({table: {head, rows}, id}) => [element('div', {id}, plainTable(head, rows))],
  chart: block => [figure(charts[block.chart](block))],
  details: ({details, blocks: inner}) => [element('details', {ontoggle: drawFigures}, element('summary', {}, details), ...inner.flatMap(nodesOf))],
};
function nodesOf(block) {
  const kind = Object.keys(blocks).find(one => one in block);
  return blocks[kind](block);
}

// ---- views of a sweep: columns of figures (32-bit floats) and of places in lists of texts (sweep_html.cpp)

function sweepViews(sweep) {
  const decode = (text, Type) => new Type(Uint8Array.from(atob(text), one => one.charCodeAt(0)).buffer);
  const places = one => decode(one.at, {1: Uint8Array, 2: Uint16Array, 4: Uint32Array}[one.width]);
  const {dimensions, metrics, scenario, error} = sweep, number = decode(sweep.number, Uint32Array);
  for (const one of [...dimensions, scenario, error]) one.at = places(one);
  for (const one of metrics) one.at = decode(one.at, Float32Array);
  const metric = name => metrics.find(one => one.name === name), dimension = name => dimensions.find(one => one.name === name);
  const makespan = metric('makespan_us'), schedule = dimension('schedule');
  const failed = row => error.values[error.at[row]] !== '';
  const show = (one, row) => figureText(one.at[row] * one.scale), label = one => `${one.label} [${one.unit}]`;
  const valueOf = (one, row) => one.values[one.at[row]], scheduleOf = row => schedule ? valueOf(schedule, row) : 'all';
  const all = d3.range(number.length), rowsOf = chosen => all.filter(row => scenario.at[row] === chosen && !failed(row));
  const choice = row => [...(schedule ? [scheduleOf(row)] : []), ...dimensions.filter(one => one.choice && one.swept && one !== schedule &&
    valueOf(one, row) !== '').map(one => `${one.label} ${valueOf(one, row)}`)].join(', ') || `point ${number[row]}`;

  /// Drop-downs, a chart and its numbers, drawn anew at every choice. `make` returns {draw, note, head, rows}.
  function view(id, pickers, make) {
    const bar = element('div', {class: 'pickers'}), place = element('div', {id}), chosen = {};
    const update = () => {
      const {draw, note, head, rows} = make(chosen), details = place.querySelector('details');
      place.replaceChildren(...(draw ? [figure(draw)] : []), ...(note ? [element('p', {class: 'note'}, note)] : []),
        ...(head ? [element('details', {open: !!details && details.open}, element('summary', {}, 'in numbers'), plainTable(head, rows))] : []));
      drawFigures();
    };
    for (const [text, name, choices, first, title] of pickers)
      chosen[name] = picker(bar, text, `${id}-${name}`, choices, first, update, title);
    queueMicrotask(update);
    return [bar, place];
  }
  const scenarios = ['scenario', 'scenario', scenario.values.map((name, i) => [i, name]), 0];

  /// Whether each value of `leader` comes with one value of `one` only: zipped axes.
  const follows = (one, leader) => {
    const value = new Map();
    return all.every(row => !value.has(leader.at[row]) ? value.set(leader.at[row], one.at[row]) : value.get(leader.at[row]) === one.at[row]);
  };

  function heat() {
    if (!dimensions.length) return [element('p', {class: 'note'}, 'Nothing was varied.')];
    const axes = dimensions.map(one => [one.name, one.name]), first = scenario.at.indexOf(0), swept = dimensions.filter(one => one.swept);
    // The best over several choices is a choice; the best over several operators or machines would mix them.
    return view('heat', [['across', 'x', axes, sweep.first[0]], ['down', 'y', axes, sweep.first[1]],
      ['value', 'value', metrics.filter(one => one.better !== 'neither').map(one => [one.name, label(one)]), 'speedup'],
      ...swept.map(one => [one.label, 'fixed-' + one.name, [...(one.choice ? [['', 'any (the best)']] : []),
        ...one.shown.map((value, i) => [i, value])], one.choice ? '' : one.at[first], one.name])], chosen => {
      const x = dimension(chosen.x.value), y = chosen.y.value === x.name ? null : dimension(chosen.y.value), shown = metric(chosen.value.value);
      for (const one of swept) chosen['fixed-' + one.name].disabled = follows(one, x) || y && follows(one, y);
      const fixed = swept.map(one => [one, chosen['fixed-' + one.name]]).filter(([, select]) => select.value !== '' && !select.disabled);
      const best = new Map(), sign = shown.better === 'more' ? -1 : 1;
      for (const row of all) {
        if (Number.isNaN(shown.at[row]) || fixed.some(([one, select]) => one.at[row] !== Number(select.value))) continue;
        const at = `${y ? y.at[row] : 0} ${x.at[row]}`;
        if (!best.has(at) || sign * shown.at[row] < sign * shown.at[best.get(at)]) best.set(at, row);
      }
      const rows = [...best.values()].sort((a, b) => (y ? y.at[a] - y.at[b] : 0) || x.at[a] - x.at[b]);
      const cells = rows.map(row => ({x: x.shown[x.at[row]], y: y ? y.shown[y.at[row]] : 'all', value: shown.at[row] * shown.scale, row,
        title: `${label(shown)}: ${show(shown, row)}\nby ${choice(row)}\n${scenario.values[scenario.at[row]]}\nmakespan ${
          show(makespan, row)} us, point ${number[row]}`}));
      const [low, high] = extent(cells.map(one => one.value)), ys = y ? y.shown : ['all'];
      const head = [...(y ? [y.label] : []), x.label, label(shown), 'by', 'point'];
      return {draw: width => {
        const left = roomFor(ys, width * 0.35), cell = (width - left - 20) / x.values.length;
        const longest = roomFor(x.shown) - 8, turned = longest > cell, texts = cell >= 42;
        const bottom = 36 + (turned ? Math.min(longest, 240) * 0.75 : 0), height = Math.max(18, Math.min(34, 620 / ys.length));
        const dark = one => high > low && (one.value - low) / (high - low) < 0.55;
        return plot({width: Math.min(width, left + 20 + 110 * x.values.length + (turned ? 40 : 0)), height: 30 + bottom + height * ys.length,
          marginLeft: left, marginBottom: bottom, marginTop: 30, padding: 0.02,
          x: {domain: x.shown, label: x.label, tickSize: 0, tickRotate: turned ? -40 : 0, labelAnchor: 'right'},
          y: {domain: ys, label: y ? y.label : null, tickSize: 0, tickFormat: text => clip(text, left), labelAnchor: 'top'},
          color: {scheme: 'cividis', legend: true, width: 320, marginLeft: 30, marginRight: 30, label: `best ${label(shown)}`, domain: high > low ? [low, high] : [low - 1, low + 1]},
          marks: [Plot.cell(cells, {x: 'x', y: 'y', fill: 'value', title: 'title', tip: true}),
            ...(texts ? [Plot.text(cells, {x: 'x', y: 'y', text: one => show(shown, one.row), fill: one => dark(one) ? 'white' : 'black'})] : [])]});
      }, note: `Best ${label(shown)}: ${y ? y.label + ' down, ' : ''}${x.label} across.`, head,
      rows: rows.map(row => [...(y ? [y.shown[y.at[row]]] : []), x.shown[x.at[row]], show(shown, row), choice(row), String(number[row])])};
    });
  }

  function pareto() {
    const costs = ['comm_cus', 'staging_bytes'].map(metric), values = (one, rows) => new Set(rows.map(row => one.at[row]).filter(at => !Number.isNaN(at)));
    const curved = costs.find(one => values(one, rowsOf(0)).size > 2) || costs[0];
    return view('pareto', [scenarios, ['against', 'cost', costs.map(one => [one.name, label(one)]), curved.name]], chosen => {
      const cost = metric(chosen.cost.value), rows = rowsOf(Number(chosen.scenario.value)).filter(row => !Number.isNaN(cost.at[row]));
      let fastest = Infinity;
      const front = [...rows].sort((a, b) => cost.at[a] - cost.at[b] || makespan.at[a] - makespan.at[b])
        .filter(row => makespan.at[row] < fastest && ((fastest = makespan.at[row]), true));
      const few = values(cost, rows).size <= 2, on = new Set(front), every = Math.ceil(rows.length / 4000);
      const xOf = row => few ? show(cost, row) : cost.at[row] * cost.scale;
      const dots = [...rows.filter((row, i) => !on.has(row) && i % every === 0), ...front].map(row => ({row, x: xOf(row),
        y: makespan.at[row], by: scheduleOf(row), title: `${choice(row)}\n${show(makespan, row)} us, ${show(cost, row)} ${cost.unit}`}));
      const names = [...new Set(dots.map(one => one.by))].sort(), steps = front.map(row => ({x: xOf(row), y: makespan.at[row]}));
      const xs = extent(dots.map(one => one.x)), ys = extent(dots.map(one => one.y));
      if (!few && steps.length) steps.push({x: xs[1], y: steps[steps.length - 1].y});
      return {draw: rows.length ? width => plot({width: Math.min(width, 960), height: 420, marginLeft: 80, marginRight: 30, grid: true, ...looks(names),
        x: few ? {type: 'point', label: label(cost), domain: [...new Set(dots.map(one => one.x))].sort((a, b) => a - b)}
          : {label: label(cost), nice: true, inset: 10},
        y: ys[1] > 3 * ys[0] ? logAxis(ys, 340, label(makespan), 20) : {label: label(makespan), nice: true, inset: 10},
        marks: [Plot.line(few ? [] : steps, {x: 'x', y: 'y', curve: 'step-after', strokeDasharray: '5 3', stroke: 'currentColor'}),
          Plot.dot(dots, {x: 'x', y: 'y', fill: 'by', symbol: 'by', r: 5, fillOpacity: one => on.has(one.row) ? 1 : 0.55,
            stroke: one => on.has(one.row) ? 'currentColor' : 'none', title: 'title', tip: true})]}) : null,
      note: every > 1 ? `Drawn: every ${every}th of ${rows.length} points, and all of the front.` : 'Framed: on the front.',
      head: [label(cost), label(makespan), 'speed-up [x]', 'by'],
      rows: front.map(row => [show(cost, row), show(makespan, row), show(metric('speedup'), row), choice(row)])};
    });
  }

  function losses() {
    const parts = metrics.filter(one => one.name === 'ideal_us' || one.name.startsWith('losses_us.'));
    return view('losses', [scenarios], chosen => {
      const best = [...d3.rollup(rowsOf(Number(chosen.scenario.value)), rows => d3.least(rows, row => makespan.at[row]), scheduleOf).values()]
        .sort((a, b) => makespan.at[a] - makespan.at[b]);
      return {draw: charts.bars({parts: parts.map(one => one.label), grey: [metric('ideal_us').label], label: 'ideal + losses = makespan [us]; gains are left of 0',
        bars: best.map(row => [schedule ? scheduleOf(row) : choice(row), parts.map(one => one.at[row]), `${show(makespan, row)} us, ${show(metric('speedup'), row)} x`])}),
      head: ['schedule', 'best by', ...parts.map(label), label(makespan)],
      rows: best.map(row => [scheduleOf(row), choice(row), ...[...parts, makespan].map(one => show(one, row))])};
    });
  }

  function points() {
    const usual = ['makespan_us', 'speedup', 'overlap_efficiency', 'exposed_comm_us', 'comm_cus', 'staging_bytes'], some = error.values.length > 1;
    const place = element('div', {id: 'points'});
    const failures = element('input', {type: 'checkbox', name: 'failures', onchange: () => place.firstChild.refill()});
    const every = element('input', {type: 'checkbox', name: 'all-figures', onchange: () => fill()});
    const fill = () => {
      const figures = metrics.filter(one => every.checked || usual.includes(one.name)).map(one => ({name: label(one), numeric: true,
        text: row => show(one, row), key: row => one.at[row]}));
      place.replaceChildren(table([
      {name: 'point', numeric: true, text: row => String(number[row]), key: row => number[row]}, ...figures.slice(0, 2),
      ...dimensions.map(one => ({name: one.label, title: one.name, text: row => valueOf(one, row), key: row => one.at[row], values: one.shown, at: row => one.at[row]})),
      ...figures.slice(2),
      ...(some ? [{name: 'error', text: row => error.values[error.at[row]], key: row => error.values[error.at[row]]}] : []),
    ], number.length, {bad: failed, keep: row => !failures.checked || failed(row), controls: [element('label', {}, every, ' all figures'),
      ...(some ? [element('label', {}, failures, ' failed points only')] : [])]}));
    };
    fill();
    return [place];
  }
  return {heat, pareto, losses, points};
}

const views = page.sweep && sweepViews(page.sweep);
blocks.view = ({view}) => views[view]();

document.title = page.title;
document.body.append(element('h1', {}, page.title), element('p', {class: 'note', id: 'made'}, `sim ${page.made.version}, ${page.made.date}: `,
  element('code', {}, page.made.command)), ...page.blocks.flatMap(nodesOf));
drawFigures();
addEventListener('resize', drawFigures);
