import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parse } from 'yaml';
import { loadResources } from '../../src/definition/load.js';
import { metricsEvents } from '../../src/ops/metrics.js';
import { projectRoot } from '../../src/paths.js';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url?: string };
}

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');
const { groups } = parse(read('deploy/prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

interface Dashboard {
  readonly panels: { readonly title: string; readonly targets?: { readonly expr: string }[] }[];
  readonly templating: { readonly list: { readonly query: { readonly query: string } | string }[] };
}
const dashboard = JSON.parse(read('deploy/prometheus/dashboard.json')) as Dashboard;

/** Names of the metrics that an expression of PromQL names, without the suffixes of a histogram's series. */
function metricsIn(expr: string): string[] {
  return [...expr.matchAll(/\b((?:gateway|process|nodejs)_\w+)/g)].map(([, name = '']) =>
    name.replace(/_(bucket|count|sum)$/, ''),
  );
}

const pool = { open: 0, inFlight: 0, waiting: 0 };
const state = { healthy: true, lagMs: 0, asOfMs: 0 };
const sources = {
  replicas: [{ name: 'replica1', state, short: pool, long: pool }] as never,
  primary: { reachable: true, reason: null },
  unfit: [],
  redis: () => ({ healthy: true, reason: null }),
  largePages: () => 0,
  requestsInFlight: () => 0,
  clientConnections: async () => 0,
};

test('alerts and dashboard name metrics that the gateway has', (t) => {
  const known = metricsEvents(sources, [])
    .registry.getMetricsAsArray()
    .map(({ name }) => name);
  const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);
  const variables = dashboard.templating.list.map(({ query }) => (typeof query === 'string' ? query : query.query));
  const named = [...rules, ...targets].flatMap(({ expr }) => metricsIn(expr)).concat(variables.flatMap(metricsIn));
  t.true(named.length > 35);
  t.deepEqual(
    named.filter((name) => !known.includes(name)),
    [],
  );
});

test('each series that an alert uses is there before anything happens, so that its first event is seen', async (t) => {
  const scraped = await metricsEvents(sources, loadResources('')).registry.metrics();
  const used = rules.flatMap(({ expr }) => [...expr.matchAll(/\b(gateway_\w+)(?:\{(\w+)=(~?)"([^"]+)"\})?/g)]);
  t.true(used.length > 12);
  for (const [text, name, label, isPattern, values = ''] of used)
    for (const value of isPattern ? values.split('|') : [values])
      t.regex(scraped, new RegExp(`^${name}(?:\\{${label ? `[^}]*${label}="${value}"` : ''}[^}]*\\})? `, 'm'), text);
});

test('docs/monitoring.md and the test of the rules have every alert', (t) => {
  const names = rules.map(({ alert }) => alert);
  const listed = [...read('docs/monitoring.md').matchAll(/^\| `(Gateway\w+)` \|/gm)].map(([, name]) => name);
  t.deepEqual(listed, names);
  const tested = read('deploy/prometheus/alerts.test.yml');
  t.deepEqual(
    names.filter((name) => !tested.includes(`alertname="${name}"`)),
    [],
  );
});

test('every alert names a section of the documentation that exists', (t) => {
  for (const { alert, annotations } of rules) {
    const [path = '', anchor] = (annotations.runbook_url ?? '').split('#');
    const sections = [...read(path).matchAll(/^##+ (.+)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^a-z0-9 -]/g, '')
        .replaceAll(' ', '-'),
    );
    t.true(sections.includes(anchor as string), `${alert}: ${annotations.runbook_url}`);
  }
});
