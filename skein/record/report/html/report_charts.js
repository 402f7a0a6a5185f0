// Charts: curves of several runs over one x axis that they all share, with values under the pointer.

const svgSpace = 'http://www.w3.org/2000/svg';

function drawn(name, attributes, parent) {
  const element = document.createElementNS(svgSpace, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (parent) parent.append(element);
  return element;
}

// A run has one of 7 colours; of more than 7 runs, the next 7 have dashed curves, the next 7 dotted ones, and so on.
const dashes = ['', '7 4', '2 3', '10 3 2 3', '14 5', '1 6', '5 2 1 2 1 2'];
function styleOf(index) {
  return {stroke: `var(--c${index % 7})`, 'stroke-dasharray': dashes[Math.floor(index / 7) % dashes.length] || 'none'};
}

function swatch(index) {
  const picture = drawn('svg', {class: 'swatch', viewBox: '0 0 26 12', 'aria-hidden': 'true'});
  drawn('line', {x1: 1, y1: 6, x2: 25, y2: 6, 'stroke-width': 3, ...styleOf(index)}, picture);
  return picture;
}

// The last index whose value is at or below x; -1: none. `list` ascends.
function lastAt(list, x) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= x) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// Where a step lies on the axis: itself, or its tokens or hours, on straight lines between those that the page has.
function placeOf(run, step, axis) {
  if (axis === 'step') return step;
  const steps = run.axis.step, values = run.axis[axis];
  if (!steps.length) return null;
  const at = lastAt(steps, step);
  if (at < 0) return step <= 0 ? 0 : values[0] * step / steps[0];
  if (at + 1 >= steps.length) return values[at];
  return values[at] + (values[at + 1] - values[at]) * (step - steps[at]) / (steps[at + 1] - steps[at]);
}

// An exponential mean over steps: a value `span` steps ago counts 1/e of the newest. A value that is not finite
// breaks the curve and leaves the mean as it was.
function smoothed(curve, span) {
  const source = curve.means || curve;
  const value = [];
  let mean = null, last = 0;
  for (let i = 0; i < source.step.length; ++i) {
    const one = source.value[i];
    if (one === null) { value.push(null); continue; }
    const keep = mean === null ? 0 : Math.exp(-(source.step[i] - last) / span);
    mean = keep === 0 ? one : mean * keep + one * (1 - keep);
    last = source.step[i];
    value.push(mean);
  }
  return {step: source.step, value};
}

const units = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
function countText(value) {
  for (const [size, name] of units)
    if (Math.abs(value) >= size) return +(value / size).toPrecision(4) + ' ' + name;
  return String(+value.toPrecision(6));
}
function plainText(value) {
  if (value === null || value === undefined || !isFinite(value)) return 'not finite';
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(3);
  return String(+value.toPrecision(6));
}
function shareText(value) { return value === null ? 'not finite' : +(100 * value).toFixed(1) + ' %'; }

function niceTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(size => size >= rough * 0.999) || rough;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(+(i * step).toPrecision(12));
  return ticks;
}
function logTicks(low, high, most) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) ticks.push(value);
    }
  const decades = ticks.filter(value => Math.abs(Math.log10(value) % 1) < 1e-9);
  if (ticks.length < 2) return niceTicks(low, high, most);
  return ticks.length > most && decades.length > 1 ? decades : ticks;
}

let numClips = 0;
const margin = {left: 58, right: 12, top: 8, bottom: 24};

// options: title, note, wide, format (value to text), series(view) -> [{run, index, curve, name, dots}], log (it may be
// logarithmic), zero (the y axis begins at 0), marks(view) -> [{run, x, text, bad}]
class Chart {
  constructor(options, view) {
    this.options = options;
    this.view = view;
    this.figure = document.createElement('figure');
    if (options.wide) this.figure.className = 'wide';
    const title = document.createElement('h3');
    title.textContent = options.title;
    this.svg = drawn('svg', {role: 'img', 'aria-label': options.title});
    this.figure.append(title, this.svg);
    if (options.note) {
      const note = document.createElement('figcaption');
      note.textContent = options.note;
      this.figure.append(note);
    }
    this.svg.addEventListener('pointermove', event => this.point(event));
    this.svg.addEventListener('pointerleave', () => this.leave());
    this.svg.addEventListener('pointerdown', event => { if (event.pointerType === 'mouse') this.from = this.xAt(event); });
    this.svg.addEventListener('pointerup', event => this.zoom(event));
    this.svg.addEventListener('dblclick', () => this.view.setRange(null));
  }

  draw() {
    const width = this.svg.clientWidth || 600, height = this.options.wide ? (width < 600 ? 240 : 330) : 220;
    this.svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.svg.style.height = height + 'px';
    this.svg.replaceChildren();
    this.size = {width, height};
    this.lines = this.options.series(this.view).map(line => this.prepared(line));
    const any = this.lines.some(line => line.x.length);
    this.figure.hidden = !any;
    if (!any) return;
    this.scale();
    this.drawGrid();
    this.drawMarks();
    for (const line of this.lines) this.drawLine(line);
    this.drawOutliers();
    this.cursor = drawn('line', {class: 'cursor', y1: margin.top, y2: height - margin.bottom, visibility: 'hidden'}, this.svg);
    this.brush = drawn('rect', {class: 'brush', y: margin.top, height: height - margin.top - margin.bottom,
                                visibility: 'hidden'}, this.svg);
  }

  prepared(line) {
    const {axis, span} = this.view;
    const shown = span > 0 && !line.dots ? smoothed(line.curve, span) : line.curve;
    const place = step => placeOf(line.run, step, axis);
    return {...line, x: shown.step.map(place), y: shown.value, step: shown.step,
            raw: shown === line.curve ? null : {x: line.curve.step.map(place), y: line.curve.value}};
  }

  // Of what lies in the range that is shown; a smoothed curve alone decides where there is one.
  scale() {
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity, least = Infinity;
    for (const line of this.lines)
      for (const x of line.x) if (x !== null) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); }
    if (this.view.range) [x0, x1] = this.view.range;
    for (const line of this.lines)
      line.y.forEach((y, i) => {
        if (y === null || line.x[i] < x0 || line.x[i] > x1) return;
        y0 = Math.min(y0, y); y1 = Math.max(y1, y);
        if (y > 0) least = Math.min(least, y);
      });
    if (!(y0 <= y1)) { y0 = 0; y1 = 1; }
    this.above = null;
    this.isLog = Boolean(this.options.log && this.view.log && isFinite(least));
    if (this.isLog) {
      y0 = least;
      if (y1 <= y0) y1 = y0 * 10;
      const pad = (y1 / y0) ** 0.04;
      y0 /= pad; y1 *= pad;
    } else {
      if (this.view.clip) y1 = this.withoutOutliers(x0, x1, y1);
      if (this.options.zero) y0 = Math.min(y0, 0);
      const pad = (y1 - y0 || Math.abs(y1) || 1) * 0.05;
      if (!(this.options.zero && y0 === 0)) y0 -= pad;
      y1 += pad;
    }
    if (x1 <= x0) { x0 -= 0.5; x1 += 0.5; }
    Object.assign(this, {x0, x1, y0, y1});
  }

  // Few values that lie far above all others would flatten every curve: the chart then says how many it leaves out.
  withoutOutliers(x0, x1, highest) {
    const values = [];
    for (const line of this.lines)
      line.y.forEach((y, i) => { if (y !== null && line.x[i] >= x0 && line.x[i] <= x1) values.push(y); });
    values.sort((a, b) => a - b);
    const low = values[Math.floor(values.length * 0.01)], high = values[Math.ceil(values.length * 0.99) - 1];
    const limit = high + 3 * (high - low);
    if (!(highest > limit) || high <= low) return highest;
    this.above = {count: values.filter(value => value > limit).length, highest};
    return values[lastAt(values, limit)];
  }

  px(x) { return margin.left + (x - this.x0) / (this.x1 - this.x0) * (this.size.width - margin.left - margin.right); }
  py(y) {
    const share = this.isLog ? Math.log(y / this.y0) / Math.log(this.y1 / this.y0) : (y - this.y0) / (this.y1 - this.y0);
    return this.size.height - margin.bottom - share * (this.size.height - margin.top - margin.bottom);
  }
  xAt(event) {
    const box = this.svg.getBoundingClientRect(), room = this.size.width - margin.left - margin.right;
    const share = (event.clientX - box.left - margin.left) / room;
    return this.x0 + Math.min(Math.max(share, 0), 1) * (this.x1 - this.x0);
  }

  drawGrid() {
    const {width, height} = this.size, format = this.options.format || plainText;
    const ticks = this.isLog ? logTicks(this.y0, this.y1, 7) : niceTicks(this.y0, this.y1, height / 48);
    for (const y of ticks) {
      const at = this.py(y);
      drawn('line', {class: 'grid', x1: margin.left, x2: width - margin.right, y1: at, y2: at}, this.svg);
      drawn('text', {x: margin.left - 6, y: at + 4, 'text-anchor': 'end'}, this.svg).textContent = format(y);
    }
    const across = niceTicks(this.x0, this.x1, Math.max((width - margin.left) / 95, 2));
    for (const x of across) {
      const at = this.px(x), anchor = at > width - 30 ? 'end' : 'middle';
      drawn('text', {x: Math.min(at, width - 2), y: height - 7, 'text-anchor': anchor}, this.svg).textContent =
          this.view.axis === 'hours' ? plainText(x) : countText(x);
    }
    drawn('line', {class: 'grid', x1: margin.left, x2: width - margin.right, y1: height - margin.bottom,
                   y2: height - margin.bottom}, this.svg);
  }

  drawOutliers() {
    if (!this.above) return;
    const {count, highest} = this.above, format = this.options.format || plainText;
    drawn('text', {class: 'above', x: this.size.width - margin.right - 4, y: margin.top + 12, 'text-anchor': 'end'}, this.svg)
        .textContent = `↑ ${count} value${count === 1 ? '' : 's'} above, up to ${format(highest)}`;
  }

  drawMarks() {
    for (const mark of this.options.marks ? this.options.marks(this.view) : []) {
      if (mark.x === null || mark.x < this.x0 || mark.x > this.x1) continue;
      const at = this.px(mark.x);
      const line = drawn('line', {class: mark.bad ? 'mark bad' : 'mark', x1: at, x2: at, y1: margin.top,
                                  y2: this.size.height - margin.bottom}, this.svg);
      drawn('title', {}, line).textContent = mark.text;
    }
  }

  path(x, y) {
    let text = '', pen = false;
    for (let i = 0; i < x.length; ++i) {
      const before = x[i] < this.x0 && !(x[i + 1] >= this.x0), after = x[i] > this.x1 && !(x[i - 1] <= this.x1);
      if (y[i] === null || x[i] === null || before || after || (this.isLog && y[i] <= 0)) { pen = false; continue; }
      text += (pen ? 'L' : 'M') + this.px(x[i]).toFixed(1) + ' ' + this.py(y[i]).toFixed(1);
      pen = true;
    }
    return text;
  }

  drawLine(line) {
    const style = {...styleOf(line.index), ...(line.style || {})};
    const clip = 'clip' + ++numClips;
    const shape = drawn('clipPath', {id: clip}, this.svg);
    drawn('rect', {x: margin.left, y: margin.top - 3, width: this.size.width - margin.left - margin.right,
                   height: this.size.height - margin.top - margin.bottom + 6}, shape);
    const group = drawn('g', {'clip-path': `url(#${clip})`}, this.svg);
    if (line.raw) drawn('path', {class: 'curve raw', d: this.path(line.raw.x, line.raw.y), stroke: style.stroke}, group);
    drawn('path', {class: 'curve', d: this.path(line.x, line.y), ...style}, group);
    const alone = line.x.length === 1;
    if (line.dots || alone)
      line.x.forEach((x, i) => {
        if (line.y[i] === null || (this.isLog && line.y[i] <= 0)) return;
        drawn('circle', {cx: this.px(x), cy: this.py(line.y[i]), r: 2.6, fill: style.stroke}, group);
      });
    for (const step of line.triangles || []) {
      const x = placeOf(line.run, step, this.view.axis), at = lastAt(line.step, step), y = line.y[at];
      if (x === null || at < 0 || y === null || y === undefined) continue;
      const left = this.px(x), top = Math.max(this.py(y) - 5, margin.top + 7);
      drawn('path', {d: `M${left} ${top}l-4 -7h8z`, fill: style.stroke}, group);
    }
  }

  point(event) {
    if (!this.lines || this.figure.hidden) return;
    const x = this.xAt(event), format = this.options.format || plainText, rows = [];
    for (const line of this.lines) {
      const at = lastAt(line.x, x);
      const near = at + 1 < line.x.length && (at < 0 || line.x[at + 1] - x < x - line.x[at]) ? at + 1 : at;
      if (near < 0) continue;
      rows.push([line.index, line.name, format(line.y[near]), line.step[near]]);
    }
    const place = this.px(x);
    this.cursor.setAttribute('x1', place);
    this.cursor.setAttribute('x2', place);
    this.cursor.setAttribute('visibility', 'visible');
    if (this.from !== undefined) {
      const [low, high] = [this.px(this.from), place].sort((a, b) => a - b);
      this.brush.setAttribute('x', low);
      this.brush.setAttribute('width', high - low);
      this.brush.setAttribute('visibility', 'visible');
    }
    this.view.tip(event, rows, this.options.title);
  }
  leave() {
    this.from = undefined;
    this.brush?.setAttribute('visibility', 'hidden');
    this.cursor?.setAttribute('visibility', 'hidden');
    this.view.tip(null);
  }
  zoom(event) {
    if (this.from === undefined) return;
    const range = [this.from, this.xAt(event)].sort((a, b) => a - b);
    this.from = undefined;
    const isDrag = this.px(range[1]) - this.px(range[0]) > 6;
    if (isDrag) this.view.setRange(range); else this.brush.setAttribute('visibility', 'hidden');
  }
}
