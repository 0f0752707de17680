import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parse } from 'yaml';
import { metricsEvents } from '../../src/ops/metrics.js';
import { projectRoot } from '../../src/paths.js';

interface Rule {
  readonly alert: string;
  readonly expr: string;
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

test('alerts and dashboard name metrics that the gateway has', (t) => {
  const sources = {
    replicas: [],
    primaryUp: () => null,
    redis: () => null,
    largePages: () => 0,
    clientConnections: async () => 0,
  };
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

test("the operator's guide and the test of the rules have every alert", (t) => {
  const names = rules.map(({ alert }) => alert);
  const listed = [...read('docs/operators-guide.md').matchAll(/^\| `(Gateway\w+)` \|/gm)].map(([, name]) => name);
  t.deepEqual(listed, names);
  const tested = read('deploy/prometheus/alerts.test.yml');
  t.deepEqual(
    names.filter((name) => !tested.includes(`alertname="${name}"`)),
    [],
  );
});
