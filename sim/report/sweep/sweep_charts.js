// Pareto front and loss bars of one scenario; functions and data of sweep_page.js.
'use strict';

const scenarioChoices = () => scenario.values.map((name, i) => [i, name]);

function rowsOf(chosen) {
  const rows = [];
  for (let row = 0; row < scenario.at.length; ++row) if (scenario.at[row] === chosen && !failed(row)) rows.push(row);
  return rows;
}

/// Numbers to label an axis with: about `count` from low to high.
function ticks(low, high, count) {
  const raw = (high - low || Math.abs(high) || 1) / count, decade = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(one => one * decade).find(one => one >= raw);
  const result = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); ++i) result.push(i * step);
  return result;
}
/// The same on a logarithmic axis: of each decade as many as leave neighbours `gap` of the axis' length apart.
function logTicks(low, high, gap) {
  const within = (steps, decades) => {
    const result = [];
    for (let exponent = Math.floor(Math.log10(low)); 10 ** exponent <= high; ++exponent)
      if (exponent % decades === 0)
        result.push(...steps.map(one => one * 10 ** exponent).filter(one => one >= low && one <= high));
    return result;
  };
  const apart = all => all.every((one, i) => i === 0 || one / all[i - 1] >= (high / low) ** gap);
  const fine = [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]].map(steps => within(steps, 1)).find(apart);
  if (fine) return fine;
  let decades = 2;
  while (!apart(within([1], decades))) ++decades;
  return within([1], decades);
}
const tickText = value => String(Number(value.toPrecision(6)));

const svgText = (x, y, text, anchor = 'start', more = {}) =>
  element('svg:text', {x, y, 'text-anchor': anchor, ...more}, text);
const tip = text => element('svg:title', {}, text);

// ---- Pareto front

/// Rows for which none takes less time and costs no more, from the cheapest on.
function paretoFront(rows, cost) {
  let fastest = Infinity;
  return [...rows].sort((a, b) => cost.at[a] - cost.at[b] || makespan.at[a] - makespan.at[b])
    .filter(row => makespan.at[row] < fastest && ((fastest = makespan.at[row]), true));
}

const costNames = ['comm_cus', 'staging_bytes'];
const valuesOf = (one, rows) => [...new Set(rows.map(row => one.at[row]).filter(value => !Number.isNaN(value)))].sort((a, b) => a - b);

function frontTable(front, cost) {
  return element('table', {id: 'pareto-table'}, element('caption', {}, 'on the front'),
    element('thead', {}, element('tr', {}, ...[label(cost), label(makespan), 'speed-up [x]', 'by'].map(text => element('th', {}, text)))),
    element('tbody', {}, ...front.map(row => element('tr', {}, element('td', {class: 'n'}, show(cost, row)),
      element('td', {class: 'n'}, show(makespan, row)), element('td', {class: 'n'}, show(metric('speedup'), row)),
      element('td', {}, choice(row))))));
}

function drawPareto() {
  const cost = metric(pareto.cost.value), rows = rowsOf(Number(pareto.scenario.value)).filter(row => !Number.isNaN(cost.at[row]));
  const front = paretoFront(rows, cost), schedule = dimension('schedule'), values = valuesOf(cost, rows);
  if (values.length <= 2) {  // no curve
    const named = values.map(value => `${figure(value * cost.scale)} ${cost.unit}`).join(' or ');
    replace('pareto', element('p', {class: 'note'}, `Every point of this scenario takes ${named}: no curve, the table has all of the front.`),
      frontTable(front, cost));
    return;
  }
  const left = 84, top = 16, width = 640, height = 380, bottom = top + height;
  const most = range(rows, cost)[1] * cost.scale || 1, [low, high] = range(rows, makespan);
  const logarithmic = low > 0 && high > 3 * low;  // else those near the front would be one on another
  const on = logarithmic ? Math.log : value => value;
  const room = logarithmic ? 1.06 : Math.max(1 + 0.06 * (high - low) / high, 1.01), from = low / room, to = high * room;
  const x = row => left + 12 + (width - 24) * cost.at[row] * cost.scale / most;
  const height_of = value => height * (on(value) - on(from)) / (on(to) - on(from) || 1);
  const y = row => bottom - height_of(makespan.at[row]);
  const legend = schedule ? [...new Set(rows.map(row => schedule.at[row]))].sort((a, b) => a - b) : [], line = 20;
  const svg = element('svg:svg', {viewBox: `0 0 1000 ${Math.max(bottom + 56, top + line * (legend.length + 1))}`, role: 'img', 'aria-label': 'Pareto front'});
  for (const tick of logarithmic ? logTicks(from, to, line / height) : ticks(from, to, 6)) {
    const at = bottom - height_of(tick);
    svg.append(element('svg:line', {x1: left, x2: left + width, y1: at, y2: at, class: 'grid'}), svgText(left - 8, at + 4, tickText(tick), 'end'));
  }
  for (const tick of ticks(0, most, 8)) {
    const at = left + 12 + (width - 24) * tick / most;
    svg.append(element('svg:line', {x1: at, x2: at, y1: bottom, y2: bottom + 5, class: 'axis'}), svgText(at, bottom + 20, tickText(tick), 'middle'));
  }
  svg.append(element('svg:rect', {x: left, y: top, width, height, class: 'frame'}),
    svgText(left + width / 2, bottom + 44, label(cost), 'middle'),
    svgText(20, top + height / 2, 'makespan [us]', 'middle', {transform: `rotate(-90 20 ${top + height / 2})`}));
  const steps = front.flatMap((row, i) => [...(i ? [`${x(row)},${y(front[i - 1])}`] : []), `${x(row)},${y(row)}`]);
  if (front.length) steps.push(`${left + width},${y(front[front.length - 1])}`);
  svg.append(element('svg:polyline', {points: steps.join(' '), class: 'front'}));
  // Those of the front are never left out, and are drawn last.
  const every = Math.ceil(rows.length / 4000), chosen = new Set(front);
  for (const row of [...rows.filter((row, i) => !chosen.has(row) && i % every === 0), ...front]) {
    const dot = mark(schedule ? schedule.at[row] : 0, x(row), y(row), chosen.has(row) ? {class: 'on-front'} : {'fill-opacity': 0.55});
    dot.append(tip(`${choice(row)}: ${show(makespan, row)} us, ${show(cost, row)} ${cost.unit}`));
    svg.append(dot);
  }
  legend.forEach((value, i) => svg.append(mark(value, left + width + 24, top + 10 + line * i, {}),
    svgText(left + width + 36, top + 14 + line * i, schedule.values[value])));
  const left_out = every > 1 ? [element('p', {class: 'note'}, `Drawn: every ${every}th of ${rows.length} points, and all of the front.`)] : [];
  replace('pareto', svg, ...left_out, frontTable(front, cost));
}

const pareto = {};
function startPareto() {
  pareto.scenario = picker('pareto-pickers', 'scenario', 'pareto-scenario', scenarioChoices(), '0', drawPareto);
  const curved = costNames.find(name => valuesOf(metric(name), rowsOf(0)).length > 2);
  pareto.cost = picker('pareto-pickers', 'against', 'pareto-cost',
    costNames.map(name => [name, label(metric(name))]), curved || costNames[0], drawPareto);
  drawPareto();
}

// ---- loss bars

function bestBySchedule(rows) {
  const schedule = dimension('schedule'), best = new Map();
  for (const row of rows) {
    const name = schedule ? valueText(schedule, row) : 'all';
    if (!best.has(name) || makespan.at[row] < makespan.at[best.get(name)]) best.set(name, row);
  }
  return [...best.values()].sort((a, b) => makespan.at[a] - makespan.at[b]);
}

function drawLosses() {
  const rows = bestBySchedule(rowsOf(Number(losses.scenario.value)));
  const parts = [metric('ideal_us'), ...points.metrics.filter(one => one.name.startsWith('losses_us.'))];
  const lookOf = part => part.name === 'ideal_us' ? '#a7b0ba' : colours[parts.indexOf(part) - 1];
  const sums = rows.map(row => parts.reduce(([up, down], one) =>
    one.at[row] > 0 ? [up + one.at[row], down] : [up, down + one.at[row]], [0, 0]));
  const most = Math.max(...sums.map(sum => sum[0])), least = Math.min(0, ...sums.map(sum => sum[1]));
  const names = rows.map(row => dimension('schedule') ? valueText(dimension('schedule'), row) : choice(row));
  const texts = rows.map(row => `${show(makespan, row)} us, ${show(metric('speedup'), row)} x`);
  const letter = 7.5, longest = all => letter * Math.max(...all.map(text => text.length));
  const left = Math.min(400, 16 + longest(names)), width = 980 - left - longest(texts);
  const top = 52, line = 26, bottom = top + line * rows.length;
  const x = value => left + width * (value - least) / (most - least);
  const svg = element('svg:svg', {viewBox: `0 0 1000 ${bottom + 48}`, role: 'img', 'aria-label': 'Losses by schedule'});
  parts.forEach((part, i) => svg.append(element('svg:rect', {x: 14 + 240 * (i % 4), y: 4 + 20 * Math.floor(i / 4), width: 12, height: 12, fill: lookOf(part)}),
    svgText(32 + 240 * (i % 4), 14 + 20 * Math.floor(i / 4), part.label)));
  for (const tick of ticks(least, most, Math.max(1, Math.floor(width / 90))))
    svg.append(element('svg:line', {x1: x(tick), x2: x(tick), y1: top - 4, y2: bottom, class: 'grid'}), svgText(x(tick), bottom + 16, tickText(tick), 'middle'));
  svg.append(svgText(left + width / 2, bottom + 38, 'ideal + losses = makespan [us]; gains are left of 0, | is the makespan', 'middle'));
  rows.forEach((row, i) => {
    const y = top + line * i;
    let up = 0, down = 0;
    for (const part of parts) {
      const value = part.at[row];
      const from = value > 0 ? up : down + value;
      if (value > 0) up += value; else down += value;
      const bar = element('svg:rect', {x: x(from), y: y + 3, width: Math.max(x(from + Math.abs(value)) - x(from), 0), height: line - 8, fill: lookOf(part)});
      bar.append(tip(`${choice(row)}: ${part.label} ${figure(value)} us`));
      svg.append(bar);
    }
    const most_letters = Math.floor((left - 16) / letter);
    const name = svgText(left - 8, y + line / 2 + 3, names[i].length > most_letters ? names[i].slice(0, most_letters - 1) + '…' : names[i], 'end');
    name.append(tip(choice(row)));
    svg.append(name, element('svg:line', {x1: x(makespan.at[row]), x2: x(makespan.at[row]), y1: y + 1, y2: y + line - 3, class: 'axis'}),
      svgText(x(up) + 8, y + line / 2 + 3, texts[i]));
  });
  const head = ['schedule', 'best by', ...parts.map(label), label(makespan)];
  const numbers = element('details', {}, element('summary', {}, 'in numbers'), element('div', {class: 'scroll'},
    element('table', {id: 'losses-table'}, element('thead', {}, element('tr', {}, ...head.map(text => element('th', {}, text)))),
      element('tbody', {}, ...rows.map(row => element('tr', {},
        element('td', {}, dimension('schedule') ? valueText(dimension('schedule'), row) : ''), element('td', {}, choice(row)),
        ...[...parts, makespan].map(part => element('td', {class: 'n'}, show(part, row)))))))));
  replace('losses', svg, numbers);
}

const losses = {};
function startLosses() {
  losses.scenario = picker('losses-pickers', 'scenario', 'losses-scenario', scenarioChoices(), '0', drawLosses);
  drawLosses();
}

startPareto();
startLosses();
