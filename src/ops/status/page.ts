import { fillHtml, type Html, html } from '../../openapi/html.js';
import { projectText } from '../../paths.js';
import type { Count, ReplicaStatus, StatusReport, Traffic } from './status.js';
import { bytes, count, duration, quantity } from './status.js';

/** The page without the parts that change. Its style and its script are inline: a Content-Security-Policy can allow them by their hashes. */
export function statusFrame(): string {
  const text = (file: string): string => projectText(`config/status/${file}`);
  return text('page.html').replace(/<(style|script) src="([\w.]+)">/g, (_, tag, file) => `<${tag}>${text(file)}`);
}

/** The frame with a report in it. It needs no script; its script keeps it up to date. */
export function statusPage(frame: string, report: StatusReport, docsAddress: string | null): string {
  const { summary, faults, at, replicas } = report;
  const refusals = [
    ...report.limitHits.map((row) => ({ ...row, status: 429, name: `limit by ${row.name}` })),
    ...report.shed.map((row) => ({ ...row, status: 503, name: `bound of ${row.name.replaceAll('_', ' ')}` })),
  ];
  return fillHtml(frame, {
    level: report.level,
    summary,
    faults: faults.length > 1 ? html`<ul>${faults.map(({ sentence }) => html`<li>${sentence}</li>`)}</ul>` : '',
    version: report.version,
    time: html`<time datetime="${at}">${at.slice(11, 19)} UTC</time>`,
    traffic: figures.map((figure) => figureCard(figure, report)),
    replicas: replicas.map(replicaCard),
    servers: serverRows(report).map(([name, state]) => html`<dt>${name}</dt><dd>${state}</dd>`),
    errors: countTable('Errors', 'Code', report.errors),
    refusals: countTable('Refusals', 'By', refusals),
    writes: countTable('Writes', 'Outcome', report.writes),
    docs: docsAddress === null ? '' : html`<a href="${docsAddress}">docs</a>`,
  }).text;
}

interface Figure {
  readonly title: string;
  readonly key: keyof Traffic;
  readonly words: (value: number) => string;
}

const figures: readonly Figure[] = [
  { title: 'Requests/s', key: 'requestsPerSecond', words: quantity },
  { title: 'Rows/s', key: 'rowsPerSecond', words: quantity },
  { title: 'Bytes/s', key: 'bytesPerSecond', words: bytes },
  { title: 'Duration, p50', key: 'p50Seconds', words: duration },
  { title: 'Duration, p99', key: 'p99Seconds', words: duration },
  { title: 'In flight', key: 'requestsInFlight', words: quantity },
];

function figureCard({ title, key, words }: Figure, { traffic }: StatusReport): Html {
  const value = traffic[key];
  return html`<article><h3>${title}</h3><p class="figure">${value === null ? '–' : words(value)}</p></article>\n`;
}

function replicaCard({ name, state, reason, lagSeconds, dataAgeSeconds }: ReplicaStatus): Html {
  const age = dataAgeSeconds === null ? 'age of the data not known' : `data ${duration(dataAgeSeconds)} old`;
  const lag = lagSeconds === null ? 'lag not known' : `${duration(lagSeconds)} behind`;
  return html`<article data-state="${state}"><h3>${name} <span class="state">${state}</span></h3>
<p class="figure">${lag} <small>${age}</small></p>
${state === 'not used' ? html`<p class="reason">${reason ?? ''}</p>` : ''}</article>\n`;
}

function serverRows({ primary, redis, workers }: StatusReport): [string, string][] {
  const state = (server: { readonly healthy: boolean; readonly reason?: string | null } | null): string => {
    if (server === null) return 'not configured';
    return server.healthy ? 'answers' : `does not answer${server.reason ? `: ${server.reason}` : ''}`;
  };
  const serving =
    workers === null
      ? 'none: a single process'
      : `${workers.reporting} of ${count(workers.configured, 'worker')} report`;
  return [
    ['Primary', state(primary)],
    ['Redis', state(redis)],
    ['Workers', serving],
  ];
}

function countTable(title: string, of: string, rows: readonly (Count & { readonly status?: number })[]): Html {
  if (rows.length === 0) return html`<h2>${title}</h2><p class="none">None in the last 10 minutes.</p>`;
  return html`<h2>${title}</h2><table>
<thead><tr><th scope="col">${of}</th><th scope="col">1 min</th><th scope="col">10 min</th></tr></thead>
<tbody>${rows.map(
    ({ status, name, lastMinute, lastTenMinutes }) =>
      html`<tr><th scope="row">${status === undefined ? '' : `${status} `}${name}</th><td>${quantity(lastMinute)}</td><td>${quantity(lastTenMinutes)}</td></tr>`,
  )}</tbody></table>`;
}
