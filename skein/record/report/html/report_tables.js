// What the page shows as tables. Texts of runs come in by textContent alone, never as markup.

function made(name, options = {}, ...children) {
  const element = document.createElement(name);
  for (const key in options) {
    if (key === 'class') element.className = options[key];
    else if (key === 'text') element.textContent = options[key];
    else element.setAttribute(key, options[key]);
  }
  element.append(...children);
  return element;
}

function section(title, ...children) {
  const made_ = made('section', {}, made('h2', {text: title}), ...children);
  document.getElementById('page').append(made_);
  return made_;
}

// head: names of columns; rows: of {text | node, class}. A `cards` table is a card a row in a narrow window.
function table(head, rows, cards) {
  const body = made('tbody'), result = made('table', {class: cards ? 'data cards' : 'data'}), top = made('tr');
  for (const name of head) top.append(made('th', name.class ? {class: name.class, text: name.text} : {text: name.text ?? name}));
  for (const cells of rows) {
    const row = made('tr');
    cells.forEach((cell, i) => {
      const one = made('td', {class: cell.class || '', 'data-label': head[i].text ?? head[i]});
      if (cell.node) one.append(cell.node); else one.textContent = cell.text ?? '';
      row.append(one);
    });
    body.append(row);
  }
  result.append(made('thead', {}, top), body);
  return made('div', {class: 'scroll'}, result);
}

const text = (value, name) => ({text: value ?? '–', class: name || ''});
const number = value => ({text: value ?? '–', class: 'number'});
const shortText = value => value === null ? 'not finite' : plainText(+value.toPrecision(4));
const stepText = step => step === null || step === undefined ? '–' : step.toLocaleString('en-US');

function runName(run) {
  return made('span', {class: 'swatched', title: run.folder}, swatch(run.index), made('span', {text: run.name}));
}
const nameCell = run => ({node: runName(run)});

function bytesText(bytes) {
  for (const [size, name] of [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']])
    if (bytes >= size) return +(bytes / size).toPrecision(3) + ' ' + name;
  return bytes + ' B';
}
function secondsText(seconds) {
  if (seconds >= 5400) return (seconds / 3600).toFixed(1) + ' h';
  if (seconds >= 100) return (seconds / 60).toFixed(1) + ' min';
  return seconds >= 1 ? +seconds.toPrecision(3) + ' s' : +(seconds * 1000).toPrecision(2) + ' ms';
}

const headings = {
  loss: 'final loss', 'loss.best': 'best loss', 'validation.loss': 'validation', 'validation.best': 'best validation',
  wall_seconds: 'time', tokens_per_s: 'tokens/s', matmul_ceiling_share: 'of ceiling', peak_utilization: 'MFU',
  grad_spikes: 'spikes',
};
function headingOf(figure) {
  const set = figure.match(/^validation\.(.+)\.(loss|best)$/);
  if (set) return (set[2] === 'best' ? 'best validation, ' : 'validation, ') + set[1];
  return headings[figure] || figure;
}

function showRuns(data) {
  const names = [];
  for (const run of data.runs)
    for (const [name] of run.figures)
      if (!name.startsWith('eval.') && name !== 'steps' && !names.includes(name)) names.push(name);
  const rows = data.runs.map(run => {
    const figures = Object.fromEntries(run.figures), planned = run.report.planned_steps;
    const isBad = /^(failed|killed)/.test(run.state);
    return [nameCell(run), text(run.state, isBad ? 'bad' : ''),
            number(stepText(run.report.steps) + (planned ? ' of ' + stepText(planned) : '')),
            ...names.map(name => number(figures[name]))];
  });
  section('Runs', table(['run', 'state', {text: 'steps', class: 'number'},
                         ...names.map(name => ({text: headingOf(name), class: 'number'}))], rows, true));
}

function documentsNode(answer) {
  const box = made('details', {}, made('summary', {text: `${answer.documents.length} of ${answer.num_documents ?? '?'} documents` +
      (answer.exact ? '' : `, by the weights of step ${answer.weights_step}`)}));
  for (const one of answer.documents) {
    const share = one.loss_share === null ? '' : `, ${(100 * one.loss_share).toFixed(1)} % of the loss`;
    box.append(made('small', {text: `document ${one.document} of ${one.corpus}` +
        (one.source ? ` (${one.source}:${one.record})` : '') +
        `: loss ${shortText(one.loss)}, gradient norm ${shortText(one.grad_norm)}${share}`}),
        made('pre', {text: one.text ?? ''}));
  }
  return box;
}

function showSpikes(data) {
  const rows = [];
  for (const run of data.runs) {
    const answers = new Map(run.explained.map(answer => [answer.step, answer]));
    for (const spike of run.spikes) {
      let answer = null;
      for (let step = spike.step; step < spike.step + spike.length && !answer; ++step) answer = answers.get(step);
      if (answer) answers.delete(answer.step);
      rows.push([nameCell(run), number(stepText(spike.step)), number(String(spike.length)), number(shortText(spike.grad_norm)),
                 number(shortText(spike.loss)),
                 {class: 'across', node: answer ? documentsNode(answer)
                     : made('code', {text: `skein why ${run.folder} --step ${spike.step} --save`})}]);
    }
    for (const answer of answers.values())
      rows.push([nameCell(run), number(stepText(answer.step)), text('no spike', 'number'), number('–'),
                 number(shortText(answer.loss)), {class: 'across', node: documentsNode(answer)}]);
  }
  const said = made('p', {class: 'soft', text: 'Gradient norms that stand out of their noise. A run does not record the ' +
      'documents of a step: the command in the last column computes them from a checkpoint and keeps them in the run ' +
      'folder, and the next report shows them.'});
  if (!rows.length) return section('Spikes', made('p', {text: 'None beyond the noise of the gradient norm.'}));
  const shown = rows.slice(0, 30), rest = rows.slice(30);
  const head = ['run', {text: 'step', class: 'number'}, {text: 'steps long', class: 'number'},
                {text: 'highest norm', class: 'number'}, {text: 'loss', class: 'number'}, 'documents'];
  const made_ = section('Spikes', said, table(head, shown, true));
  if (rest.length)
    made_.append(made('details', {}, made('summary', {text: `${rest.length} more`}), table(head, rest, true)));
}

const partNames = {
  productive: 'productive', data_wait: 'waiting for data', saving: 'saving', replicating: 'replicating',
  redone: 'redone: steps that were lost', validating: 'validating', starting: 'starting', detecting: 'detecting failures',
  recovering: 'recovering from them', waiting: 'waiting: machines, a back-off, a new start',
};
const partColours = ['--c2', '--p1', '--p0', '--p3', '--p4', '--p2', '--p5', '--p7', '--p9', '--p6'];

function showTime(data) {
  const boxes = [];
  for (const run of data.runs) {
    const time = run.report.time, total = time.wall_seconds;
    if (!(total > 0)) continue;
    const bar = made('div', {class: 'bar'}), list = made('div', {class: 'parts'});
    Object.keys(partNames).forEach((part, i) => {
      const seconds = time.parts[part] || 0, share = 100 * seconds / total;
      if (seconds <= 0) return;
      const colour = `var(${partColours[i]})`, piece = made('i', {title: `${partNames[part]}: ${secondsText(seconds)}`});
      piece.style.flex = `0 1 ${share}%`;
      piece.style.background = colour;
      bar.append(piece);
      const square = made('b');
      square.style.background = colour;
      list.append(made('span', {}, square, `${partNames[part]} ${share.toFixed(1)} % (${secondsText(seconds)})`));
    });
    boxes.push(made('div', {class: 'by-run'}, runName(run), made('span', {class: 'soft',
        text: ` goodput ${(100 * run.report.goodput).toFixed(1)} % of ${secondsText(total)}`}), bar, list));
  }
  if (boxes.length) section('Time and goodput', ...boxes);
}

function showEvents(data) {
  const rows = [];
  for (const run of data.runs) {
    const entries = run.events.map(event => ({...event, bad: /wrong_bits|host_lost|checkpoint_skip/.test(event.event)}));
    for (const failure of run.report.failures)
      entries.push({hours: failure.time > 0 && run.began > 0 ? (failure.time - run.began) / 3600 : null, step: failure.step,
                    event: failure.fatal ? 'failure' : 'failure, training continued', text: failure.reason, bad: true});
    for (const change of run.report.changes)
      entries.push({hours: null, step: change.step, event: 'changed',
                    text: `${change.key} from ${change.before || '""'} to ${change.after || '""'}`});
    entries.sort((a, b) => (a.step ?? 1e18) - (b.step ?? 1e18) || (a.hours ?? 0) - (b.hours ?? 0));
    for (const entry of entries)
      rows.push([nameCell(run), number(stepText(entry.step)),
                 number(entry.hours === null ? '–' : secondsText(Math.max(entry.hours * 3600, 0))),
                 text(entry.event, entry.bad ? 'bad key' : 'key'), text(entry.text, 'text across')]);
  }
  if (!rows.length) return;
  const head = ['run', {text: 'after step', class: 'number'}, {text: 'after', class: 'number'}, 'event', ''];
  const made_ = section('Starts, stops and failures', table(head, rows.slice(0, 40), true));
  if (rows.length > 40)
    made_.append(made('details', {}, made('summary', {text: `${rows.length - 40} more`}), table(head, rows.slice(40), true)));
}

function showMemory(data) {
  const arenas = [];
  for (const run of data.runs)
    for (const arena in run.memory.allocated)
      if (run.memory.allocated[arena] > 0 && !arenas.includes(arena)) arenas.push(arena);
  const rows = [];
  for (const run of data.runs) {
    const allocated = run.memory.allocated, sum = Object.values(allocated).reduce((a, b) => a + b, 0);
    if (!sum) continue;
    const peak = run.memory.peak_resident_bytes;
    rows.push([nameCell(run), number(bytesText(sum)), number(peak === null ? 'not recorded' : bytesText(peak)),
               ...arenas.map(arena => number(allocated[arena] ? bytesText(allocated[arena]) : '–'))]);
  }
  if (!rows.length) return;
  section('Memory of rank 0', made('p', {class: 'soft', text: 'Planned: the arenas of the plan, which the run allocated to the ' +
      'byte. Measured: the most that the process of rank 0 had of the host’s memory at once, the program itself included; ' +
      'a run writes it when it stops. On a GPU the arenas lie in the memory of the device.'}),
      table(['run', {text: 'planned', class: 'number'}, {text: 'measured', class: 'number'},
             ...arenas.map(arena => ({text: arena, class: 'number'}))], rows, true));
}

function showEvaluations(data) {
  const tasks = new Map();  // name: {task, metric, higher, by run}
  for (const run of data.runs)
    for (const evaluation of run.evaluations)
      for (const score of evaluation.scores) {
        const name = score.task + '\n' + score.metric;
        if (!tasks.has(name)) tasks.set(name, {...score, newest: new Map()});
        tasks.get(name).newest.set(run, {...score, step: evaluation.step});
      }
  if (!tasks.size) return;
  const rows = [];
  for (const entry of [...tasks.values()].sort((a, b) => a.task < b.task ? -1 : a.task > b.task ? 1 : 0)) {
    const lowerIsBetter = entry.higher_is_better === false || /perplexity|bits_per_byte/.test(entry.metric);
    const values = [...entry.newest.values()].map(score => score.value).filter(value => value !== null);
    const best = lowerIsBetter ? Math.min(...values) : Math.max(...values);
    rows.push([text(entry.task, 'key'), text(entry.metric, 'key'), ...data.runs.map(run => {
      const score = entry.newest.get(run);
      if (!score) return number('–');
      const cell = number((score.value === null ? 'not finite' : score.value.toFixed(4)) +
          (score.error === null ? '' : ' ± ' + score.error.toFixed(4)));
      if (data.runs.length > 1 && score.value === best) cell.class += ' best';
      return cell;
    })]);
  }
  const steps = data.runs.map(run => {
    const last = run.evaluations[run.evaluations.length - 1];
    return number(last ? 'step ' + stepText(last.step) : '–');
  });
  rows.unshift([text('newest', 'soft'), text(''), ...steps]);
  section('Evaluations', made('p', {class: 'soft', text: 'The newest score of each task; ± its standard error.' +
      (data.runs.length > 1 ? ' The best of the runs is bold.' : '')}),
      table(['task', 'metric', ...data.runs.map(run => ({text: run.name, class: 'number'}))], rows));
}

function showSettings(data) {
  if (data.runs.length > 1) {
    if (!data.differences.length) {
      section('Differences of the configurations', made('p', {text: 'None: the settings of these runs are equal.'}));
    } else {
      section('Differences of the configurations',
              table(['key', ...data.runs.map(run => run.name)], data.differences.map(row => [
                {node: made('code', {text: row[0]})},
                ...row.slice(1).map(value => text(value === '' ? '""' : value, 'text'))])));
    }
  }
  const boxes = data.runs.filter(run => run.settings.length).map(run => made('details', {},
      made('summary', {text: data.runs.length > 1 ? run.name : 'every key'}),
      table(['key', 'value'], run.settings.map(([key, value]) => [{node: made('code', {text: key})},
                                                                 text(value === '' ? '""' : value, 'text')]))));
  if (boxes.length) section(data.runs.length > 1 ? 'All settings' : 'Settings', ...boxes);
}

function showNotes(data) {
  const notes = [...data.notes], list = made('ul', {class: 'notes'});
  for (const run of data.runs) {
    notes.push(...run.notes);
    if (run.num_steps > data.most_points)
      notes.push(`${run.name}: of ${stepText(run.num_steps)} steps each curve has ${stepText(data.most_points)} points at most: ` +
                 'the lowest and the highest value of equal stretches of steps, so every spike is there. Smoothed curves are ' +
                 'made of the means of those stretches.');
  }
  if (!notes.length) return;
  for (const note of notes) list.append(made('li', {text: note}));
  section('Left out', list);
}
