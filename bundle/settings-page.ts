import { environmentName, settingsSchema } from '../src/serve/settings.js';

type Setting = ReturnType<typeof settingsSchema>['properties'][string] & {
  readonly pattern?: string;
};
type Named = readonly [name: string, setting: Setting];

/** The text of docs/reference/settings.md, made from config/settings.schema.json; `npm run docs` writes it, a test compares. */
export function settingsPage(): string {
  const all: Named[] = Object.entries(settingsSchema().properties);
  const secrets = all.filter(([, setting]) => setting['x-secret']);
  const bounds = all.filter(([name, { type }]) => type === 'integer' && !/port$/i.test(name));
  const rest = all.filter((named) => !secrets.includes(named) && !bounds.includes(named));
  return `# Settings

<!-- Made from config/settings.schema.json by \`npm run docs\`; change it there. -->

Each setting comes from the environment, else from the JSON file that \`CONFIG_FILE\` names, else from its default. In
the file a setting is named as in the schema: \`PER_PAGE_MAX\` is \`perPageMax\`. Unknown names, values outside the
limits and secrets in the file keep the gateway from starting, all of them named at once.
\`workspace-data-gateway serve --print-config\` shows the settings in force, without secrets.

## Databases, keys and other secrets

From the environment, or from the file that \`NAME_FILE\` names (\`DATA_KEYS_FILE=/run/secrets/data_keys\`); not both, and never
from \`CONFIG_FILE\`. Empty by default.

| Variable | Meaning |
|---|---|
${secrets.map(([name, { description }]) => row(variable(name), description)).join('\n')}

## Bounds and times

Whole numbers.

| Variable | Default | From | To | Meaning |
|---|---:|---:|---:|---|
${bounds.map(boundRow).join('\n')}

## Everything else

| Variable | Default | Allowed | Meaning |
|---|---|---|---|
${rest.map(([name, setting]) => row(variable(name), byDefault(setting), allowed(setting), setting.description)).join('\n')}
`;
}

function boundRow([name, { default: value, minimum, maximum, description }]: Named): string {
  return row(variable(name), grouped(value), grouped(minimum ?? ''), grouped(maximum ?? ''), description);
}

function byDefault({ default: value }: Setting): string {
  return value === '' ? '(empty)' : `\`${value}\``;
}

function allowed({ enum: values, pattern, minimum, maximum, type }: Setting): string {
  if (values) return values.map((value) => `\`${value}\``).join(' ');
  if (minimum !== undefined) return `${minimum} to ${maximum}`;
  if (type === 'boolean') return '`true` `false`';
  return pattern ? `\`${pattern}\`` : 'any text';
}

function variable(name: string): string {
  return `\`${environmentName(name)}\``;
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

/** 10000 → 10,000. */
function grouped(value: string | number | boolean): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}
