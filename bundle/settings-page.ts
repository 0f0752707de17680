import { getEnvironmentName, readSettingsSchema } from '../src/settings.js';

type Setting = ReturnType<typeof readSettingsSchema>['properties'][string];

/** The headings of the page, each before its first setting in the order of the schema. */
const topics: Readonly<Record<string, string>> = {
  host: 'Addresses',
  replicaUrls: 'Databases and keys',
  resourcesDir: 'Definitions and values',
  perPageDefault: 'Limits of clients',
  shortConnections: 'Connections and deadlines',
  drainMs: 'HTTP and stopping',
  webConcurrency: 'Several processes and machines',
  logLevel: 'Log and traces',
  deprecation: 'The end of a version',
};

/** The text of docs/reference/settings.md, made from config/settings.schema.json; `npm run docs` writes it, a test compares. */
export function settingsPage(): string {
  const all = Object.entries(readSettingsSchema().properties);
  return `# Settings

<!-- Made from config/settings.schema.json by \`npm run docs\`; change it there. -->

A setting comes from the environment, otherwise from the JSON file that \`CONFIG_FILE\` names, otherwise from its default. In the file
\`PER_PAGE_MAX\` is called \`perPageMax\`.

A **secret** comes from the environment, or from the file that \`NAME_FILE\` names (\`DATA_KEYS_FILE=/run/secrets/data_keys\`), not from both
and never from \`CONFIG_FILE\`.

The gateway does not start with unknown names, values outside their limits, or secrets in the file; it names all of them at once.
\`workspace-data-gateway serve --print-config\` shows the settings in force, without secrets. Times that end in \`_MS\` are milliseconds.
${all.map(([name, setting]) => (name in topics ? `\n## ${topics[name]}\n` : '') + entry(name, setting)).join('')}`;
}

function entry(name: string, setting: Setting): string {
  return `\n### \`${getEnvironmentName(name)}\`\n\n${values(setting)}\n\n${setting.description}\n`;
}

/** The sentence about the values of a setting. */
function values({
  'x-secret': isSecret,
  default: value,
  enum: names,
  pattern,
  minimum,
  maximum,
  type,
}: Setting): string {
  if (isSecret) return 'Secret, by default empty.';
  const byDefault = value === '' ? 'By default empty' : `Default \`${value}\``;
  if (names) return `${byDefault}; one of ${names.map((name) => `\`${name}\``).join(', ')}.`;
  if (minimum !== undefined && maximum !== undefined)
    return `${byDefault}; ${grouped(minimum)} to ${grouped(maximum)}.`;
  if (type === 'boolean') return `${byDefault}; \`true\` or \`false\`.`;
  return pattern && pattern.length < 60 ? `${byDefault}; must match \`${pattern}\`.` : `${byDefault}.`;
}

/** 10000 → 10,000. */
function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}
