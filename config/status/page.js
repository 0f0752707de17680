// Shows status.json, and reads it again every 5 seconds while the page is seen.
const everyMs = 5000;
const find = (selector) => document.querySelector(selector);
let answeredAt = new Date();

const short = (number) => number.toLocaleString('en', { maximumSignificantDigits: 3 });
const quantity = (number) => (number >= 1000 ? Math.round(number).toLocaleString('en') : short(number));
const inUnits = (units) => (number) => {
  const [name, size] = units.find((unit) => number >= unit[1]) ?? units.at(-1);
  return `${quantity(number / size)} ${name}`;
};
const duration = inUnits([['d', 86_400], ['h', 3600], ['min', 60], ['s', 1], ['ms', 0.001]]); // biome-ignore format: one line
const bytes = inUnits([['GB', 1e9], ['MB', 1e6], ['kB', 1e3], ['B', 1]]); // biome-ignore format: one line

const figures = [
  ['Requests/s', 'requestsPerSecond', quantity],
  ['Rows/s', 'rowsPerSecond', quantity],
  ['Bytes/s', 'bytesPerSecond', bytes],
  ['Duration, p50', 'p50Seconds', duration],
  ['Duration, p99', 'p99Seconds', duration],
  ['In flight', 'requestsInFlight', quantity],
];

/** An element with the children, of which texts are never markup. */
function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function replicaCard({ name, state, reason, lagSeconds, dataAgeSeconds }) {
  const lag = lagSeconds === null ? 'lag not known' : `${duration(lagSeconds)} behind`;
  const age = dataAgeSeconds === null ? 'age of the data not known' : `data ${duration(dataAgeSeconds)} old`;
  const title = element('h3', {}, name, element('span', { className: 'state' }, state));
  const card = element('article', {}, title, element('p', { className: 'figure' }, lag, element('small', {}, age)));
  card.dataset.state = state;
  if (state === 'not used') card.append(element('p', { className: 'reason' }, reason ?? ''));
  return card;
}

function row(first, ...others) {
  return element('tr', {}, element('th', { scope: 'row' }, first), ...others.map((text) => element('td', {}, text)));
}

function countRows(rows) {
  if (rows.length === 0) return [row('None in the last 10 minutes')];
  const head = ['', '1 min', '10 min'].map((text) => element('th', { scope: 'col' }, text));
  const counts = rows.map(({ status, name, lastMinute, lastTenMinutes }) =>
    row(status === undefined ? name : `${status} ${name}`, quantity(lastMinute), quantity(lastTenMinutes)),
  );
  return [element('thead', {}, element('tr', {}, ...head)), ...counts];
}

function answers(server) {
  if (server === null) return 'not configured';
  return server.healthy ? 'answers' : `does not answer: ${server.reason}`;
}

function show({ level, summary, faults, version, at, traffic, replicas, primary, redis, workers, ...counts }) {
  document.title = `${summary} – Workspace data gateway`;
  document.body.dataset.level = level;
  if (find('h1').textContent !== summary) find('h1').textContent = summary; // a change is read aloud
  find('.summary ul').replaceChildren(
    ...(faults.length > 1 ? faults : []).map(({ sentence }) => element('li', {}, sentence)),
  );
  find('#version').textContent = version;
  find('time').textContent = `${at.slice(11, 19)} UTC`;
  find('#traffic').replaceChildren(
    ...figures.map(([title, key, words]) => {
      const figure = element('p', { className: 'figure' }, traffic[key] === null ? '–' : words(traffic[key]));
      return element('article', {}, element('h3', {}, title), figure);
    }),
  );
  find('#replicas').replaceChildren(...replicas.map(replicaCard));
  find('#servers').replaceChildren(
    row('Primary', answers(primary)),
    row('Redis', answers(redis)),
    row('Workers', workers === null ? 'a single process' : `${workers.reporting} of ${workers.configured} report`),
  );
  find('#writes').replaceChildren(...countRows(counts.writes));
  find('#errors').replaceChildren(...countRows(counts.errors));
  find('#refusals').replaceChildren(
    ...countRows([
      ...counts.limitHits.map((hit) => ({ ...hit, status: 429, name: `limit by ${hit.name}` })),
      ...counts.shed.map((shed) => ({ ...shed, status: 503, name: `bound of ${shed.name.replaceAll('_', ' ')}` })),
    ]),
  );
}

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch('status.json');
    if (!response.ok) throw new Error(`${response.status}`);
    show(await response.json());
    answeredAt = new Date();
  } catch {
    document.body.dataset.level = 'away';
    find('.summary ul').replaceChildren();
    find('h1').textContent = document.title = `The gateway has not answered since ${answeredAt.toLocaleTimeString()}.`;
  }
}

setInterval(refresh, everyMs);
document.addEventListener('visibilitychange', refresh);
refresh();
