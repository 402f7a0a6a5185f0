// The page: its data, the controls, the charts, the tables.

const data = JSON.parse(document.getElementById('data').textContent);
data.runs.forEach((run, index) => { run.index = index; });
const page = document.getElementById('page');
const isSeveral = data.runs.length > 1;

const view = {
  axis: 'step', span: 0, log: false, clip: true, range: null, hidden: new Set(),
  runs() { return data.runs.filter(run => !this.hidden.has(run.index)); },
  setRange(range) {
    this.range = range;
    document.getElementById('whole').hidden = range === null;
    drawAll();
  },
  tip: showTip,
};
const charts = [];

function drawAll() { for (const chart of charts) chart.draw(); }

function showTip(event, rows = [], title = '') {
  const tip = document.getElementById('tip');
  tip.hidden = !event || !rows.length;
  if (tip.hidden) return;
  const steps = new Set(rows.map(row => row[3])), one = steps.size === 1;
  const list = made('table'), most = 12;
  for (const [index, name, value, step] of rows.slice(0, most))
    list.append(made('tr', {}, made('td', {}, swatch(index)), made('td', {class: 'name', text: name}),
                     made('td', {class: 'value', text: value}),
                     made('td', {class: 'soft', text: one ? '' : 'step ' + stepText(step)})));
  tip.replaceChildren(made('div', {class: 'soft', text: title + (one ? ', step ' + stepText(rows[0][3]) : '')}), list);
  if (rows.length > most) tip.append(made('div', {class: 'soft', text: `and ${rows.length - most} more curves`}));
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 6);
  const above = event.clientY + 18 + tip.offsetHeight > innerHeight;
  tip.style.left = Math.max(left, 4) + 'px';
  tip.style.top = (above ? Math.max(event.clientY - tip.offsetHeight - 12, 4) : event.clientY + 18) + 'px';
}

function showLegend() {
  if (!isSeveral) return;
  const legend = document.getElementById('legend');
  for (const run of data.runs) {
    const box = made('input', {type: 'checkbox', checked: ''});
    box.addEventListener('change', () => {
      if (box.checked) view.hidden.delete(run.index); else view.hidden.add(run.index);
      drawAll();
    });
    legend.append(made('label', {title: run.folder}, box, swatch(run.index), made('span', {text: run.name})));
  }
}

// Spans of smoothing in steps that suit the longest run: 0, then about 1, 2, 5, 10, …
function spans() {
  const longest = Math.max(1, ...data.runs.map(run => run.report.steps || 0)), list = [0];
  for (let power = 1; power < longest; power *= 10)
    for (const factor of [1, 2, 5]) if (factor * power <= longest / 4) list.push(factor * power);
  return list;
}

function controls() {
  const axis = made('select', {id: 'axis'});
  for (const [value, name] of [['step', 'steps'], ['tokens', 'tokens'], ['hours', 'hours']])
    axis.append(made('option', {value, text: name}));
  axis.addEventListener('change', () => { view.axis = axis.value; view.setRange(null); });

  const list = spans(), slider = made('input', {type: 'range', id: 'smoothing', min: 0, max: list.length - 1, step: 1, value: 0});
  const said = made('output', {for: 'smoothing', text: 'none'});
  slider.addEventListener('input', () => {
    view.span = list[slider.value];
    said.textContent = view.span ? `${stepText(view.span)} step${view.span === 1 ? '' : 's'}` : 'none';
    drawAll();
  });

  const log = made('input', {type: 'checkbox', id: 'log'});
  log.addEventListener('change', () => { view.log = log.checked; drawAll(); });
  const all = made('input', {type: 'checkbox', id: 'all'});
  all.addEventListener('change', () => { view.clip = !all.checked; drawAll(); });
  const whole = made('button', {id: 'whole', type: 'button', hidden: '', text: 'whole range'});
  whole.addEventListener('click', () => view.setRange(null));
  return made('div', {class: 'controls'}, made('label', {}, 'over', axis), made('label', {}, 'smoothing', slider, said),
              made('label', {}, log, 'logarithmic'), made('label', {}, all, 'outliers'), whole);
}

// The curve of a metric of step, of each run that has it.
function curvesOf(key, more = {}) {
  return view_ => view_.runs().filter(run => run.curves[key]).map(run => ({
    run, index: run.index, name: run.name, curve: run.curves[key],
    triangles: more.spikes ? run.spikes.map(spike => spike.step) : [],
  }));
}

function validationCurves(view_) {
  const lines = [];
  for (const run of view_.runs()) {
    const sets = new Map();
    for (const {step, loss, set = ''} of run.report.validation) {
      if (!sets.has(set)) sets.set(set, {step: [], value: []});
      sets.get(set).step.push(step);
      sets.get(set).value.push(loss);
    }
    [...sets].forEach(([set, curve], i) => lines.push({
      run, index: run.index, curve, dots: true, name: set ? `${run.name}, ${set}` : run.name,
      style: sets.size > 1 ? {'stroke-dasharray': dashes[i % dashes.length] || 'none'} : {},
    }));
  }
  return lines;
}

function scoreCurves(task, metric) {
  return view_ => view_.runs().map(run => {
    const curve = {step: [], value: []};
    for (const evaluation of run.evaluations)
      for (const score of evaluation.scores)
        if (evaluation.step !== null && score.task === task && score.metric === metric) {
          curve.step.push(evaluation.step);
          curve.value.push(score.value);
        }
    return {run, index: run.index, name: run.name, curve, dots: true};
  }).filter(line => line.curve.step.length);
}

// Where a run was started again, went back or failed.
function marksOf(view_) {
  const marks = [];
  for (const run of view_.runs()) {
    const add = (step, words, bad) => {
      if (step !== null && step !== undefined) marks.push({x: placeOf(run, step, view_.axis), text: `${run.name}: ${words}`, bad});
    };
    for (const event of run.events)
      if (/^(start|roll_back|wrong_bits)$/.test(event.event)) add(event.step, `${event.event}: ${event.text}`, false);
    for (const failure of run.report.failures) add(failure.step, failure.reason, true);
  }
  return marks;
}

function addChart(parent, options) {
  const chart = new Chart(options, view);
  parent.append(chart.figure);
  charts.push(chart);
}

function showCurves() {
  const grid = made('div', {class: 'charts'});
  const any = data.runs.some(run => run.num_steps > 0);
  if (!any) return section('Curves', made('p', {text: 'No step is recorded yet.'}));
  section('Curves', controls(), made('p', {class: 'soft', text: 'Drag over a chart to look closer, double-click for the ' +
      'whole range. Dashed vertical lines: starts and roll-backs; red ones: failures. Triangles: spikes of the gradient norm.'}),
      grid);
  const has = key => data.runs.some(run => run.curves[key]);
  addChart(grid, {title: 'Training loss (nats a token)', wide: true, log: true, marks: marksOf,
                  series: curvesOf('loss', {spikes: true})});
  addChart(grid, {title: 'Validation loss (nats a token)', log: true, marks: marksOf, series: validationCurves,
                  note: data.runs.some(run => run.report.validation.some(one => one.set))
                      ? 'Several sets: a kind of dashes a set; point at the curves for their names.' : ''});
  addChart(grid, {title: 'Gradient norm, before clipping', log: true, marks: marksOf, series: curvesOf('grad_norm', {spikes: true})});
  addChart(grid, {title: 'Learning rate', log: true, series: curvesOf('learning_rate'), zero: true});
  addChart(grid, {title: 'Tokens a second', format: countText, zero: true, series: curvesOf('tokens_per_s')});
  if (has('peak_utilization'))
    addChart(grid, {title: 'MFU: share of the advertised peak', format: shareText, zero: true, series: curvesOf('peak_utilization')});
  addChart(grid, {title: 'Share of the measured matrix-product ceiling', format: shareText, zero: true,
                  series: curvesOf('matmul_ceiling_share')});
  addChart(grid, {title: 'Time of a step (ms)', zero: true, log: true, series: curvesOf('step_ms')});
  const sizes = new Set(data.runs.flatMap(run => run.curves.batch_sequences?.value ?? []));
  if (sizes.size > 1) addChart(grid, {title: 'Sequences a batch', zero: true, series: curvesOf('batch_sequences')});
}

function showScoreCurves() {
  const steps = new Map();
  for (const run of data.runs)
    for (const evaluation of run.evaluations)
      for (const score of evaluation.scores) {
        const key = JSON.stringify([score.task, score.metric]);
        if (evaluation.step !== null) steps.set(key, (steps.get(key) || new Set()).add(evaluation.step));
      }
  const several = [...steps].filter(([, set]) => set.size > 1).map(([key]) => JSON.parse(key)), most = 24;
  if (!several.length) return;
  const grid = made('div', {class: 'charts'}), made_ = section('Evaluations over training', grid);
  for (const [task, metric] of several.slice(0, most))
    addChart(grid, {title: `${task}: ${metric}`, series: scoreCurves(task, metric)});
  if (several.length > most)
    made_.append(made('p', {class: 'soft', text: `${several.length - most} more tasks and metrics have no curve here; the table has them.`}));
}

const named = isSeveral ? `${data.runs.length} runs` : data.runs[0].name;
document.title = `${named} – Skein report`;
document.getElementById('title').textContent = isSeveral ? named : data.runs[0].name;
document.getElementById('made').textContent =
    `Skein ${data.version}, ${new Date(data.time * 1000).toISOString().replace('T', ' ').slice(0, 16)} UTC` +
    (isSeveral ? '' : `, ${data.runs[0].folder}`);
showLegend();
showRuns(data);
showCurves();
showEvaluations(data);
showScoreCurves();
showSpikes(data);
showTime(data);
showEvents(data);
showMemory(data);
showSettings(data);
showNotes(data);
drawAll();

let timer = 0, lastWidth = innerWidth;
addEventListener('resize', () => {
  if (innerWidth === lastWidth) return;  // the bar of a telephone's browser comes and goes
  lastWidth = innerWidth;
  clearTimeout(timer);
  timer = setTimeout(drawAll, 120);
});
