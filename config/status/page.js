// Shows status.json, and reads it again every 5 seconds while the page is seen.
const everyMs = 5000;
const find = (selector) => document.querySelector(selector);
let answeredAt = new Date();

const units = [['d', 86_400], ['h', 3600], ['min', 60], ['s', 1], ['ms', 0.001]]; // biome-ignore format: one line
function duration(seconds) {
  const [name, size] = units.find((unit) => seconds >= unit[1]) ?? units.at(-1);
  return `${(seconds / size).toLocaleString('en', { maximumSignificantDigits: 3 })} ${name}`;
}

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

function row(name, state) {
  return element('tr', {}, element('th', { scope: 'row' }, name), element('td', {}, state));
}

function answers(server) {
  if (server === null) return 'not configured';
  return server.healthy ? 'answers' : `does not answer: ${server.reason}`;
}

function show({ level, summary, faults, version, at, replicas, primary, redis, workers }) {
  document.title = `${summary} – Workspace data gateway`;
  document.body.dataset.level = level;
  if (find('h1').textContent !== summary) find('h1').textContent = summary; // a change is read aloud
  find('.summary ul').replaceChildren(
    ...faults.map(({ sentence, link }) =>
      element('li', {}, ...(faults.length > 1 ? [sentence, ' '] : []), element('a', { href: link }, 'What to do')),
    ),
  );
  find('#version').textContent = version;
  find('time').textContent = `${at.slice(11, 19)} UTC`;
  find('#replicas').replaceChildren(...replicas.map(replicaCard));
  find('#servers').replaceChildren(
    row('Primary', answers(primary)),
    row('Redis', answers(redis)),
    row('Workers', workers === null ? 'a single process' : `${workers.reporting} of ${workers.configured} report`),
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
