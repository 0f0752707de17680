import { fill, readText } from './template.js';

/** A request to sample, before any language. */
export interface Call {
  readonly method: string;
  /** Path behind BASE, with parameters such as `{id}`. */
  readonly path: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  /** Records of a page of a list, which a sample reads to its end; undefined for another operation. */
  readonly perPage: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly needsToken: boolean;
  /** A JSON value; undefined for none. */
  readonly body: unknown;
}

/** A language of samples: its key on the page, its name, and a single call written in it; undefined where it cannot make the call. */
type Language = readonly [key: string, name: string, sample: (call: Call) => string | undefined];

const languages: readonly Language[] = [
  ['curl', 'curl', curl],
  ['python', 'Python', python],
  ['javascript', 'JavaScript', javaScript],
  ['powerquery', 'Power Query', powerQuery],
];

/** The call in each language that can make it. That of a list, which follows `next` to the end, is a file in config/openapi/samples. */
export function samplesOf(call: Call): { readonly key: string; readonly name: string; readonly text: string }[] {
  const values = { ...call, relativePath: call.path.slice(1) };
  return languages.flatMap(([key, name, sample]) => {
    const list = call.perPage && String(fill(readText(`samples/${key}.txt`).trimEnd(), values));
    const text = list || sample(call);
    return text === undefined ? [] : [{ key, name, text }];
  });
}

/** The path with its parameters, such as `{id}`, as the language writes the variable ID. */
const withVariables = (path: string, write: (name: string) => string): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => write(name.toUpperCase()));

const variablesOf = ({ path, needsToken }: Call): string[] => [
  'BASE',
  ...(needsToken ? ['TOKEN'] : []),
  ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => (name as string).toUpperCase()),
];

/** The header fields, each with an expression. `freshKey` makes a new key for each run; a program must repeat a request with the same. */
function headersOf(call: Call, quote: (text: string) => string, bearer: string, freshKey: string): [string, string][] {
  const own = Object.entries(call.headers).map(([name, value]): [string, string] => [
    name,
    name === 'Idempotency-Key' ? freshKey : quote(value),
  ]);
  return call.needsToken ? [['Authorization', bearer], ...own] : own;
}

function curl(call: Call): string {
  const method = call.method === 'GET' ? '' : `-X ${call.method} `;
  const lines = [`curl ${method}"$BASE${withVariables(call.path, (name) => `$${name}`)}"`];
  for (const [name, value] of headersOf(call, (text) => text, 'Bearer $TOKEN', '$(uuidgen)'))
    lines.push(value.includes('"') ? `-H '${name}: ${value}'` : `-H "${name}: ${value}"`);
  if (call.body !== undefined) lines.push(`-d '${JSON.stringify(call.body, null, 2).replaceAll("'", "'\\''")}'`);
  return lines.join(' \\\n  ');
}

function python(call: Call): string {
  const variables = variablesOf(call);
  const headers = headersOf(call, JSON.stringify, 'f"Bearer {TOKEN}"', 'str(uuid.uuid4())').filter(
    ([name]) => name !== 'Content-Type', // json= sets it
  );
  const lines = [
    `f"{BASE}${withVariables(call.path, (name) => `{${name}}`)}"`,
    ...(headers.length > 0 ? [`headers={${headers.map(([name, value]) => `"${name}": ${value}`).join(', ')}}`] : []),
    ...(call.body === undefined ? [] : [`json=${pythonLiteral(call.body)}`]),
    'timeout=60',
  ];
  return `import os, requests${'Idempotency-Key' in call.headers ? ', uuid' : ''}

${variables.join(', ')} = ${variables.map((name) => `os.environ["${name}"]`).join(', ')}
reply = requests.${call.method.toLowerCase()}(
${lines.map((line) => `${indented(line)},\n`).join('')})
reply.raise_for_status()
print(reply.json())`;
}

/** A JSON value in Python: its strings are the same, its other words are not. */
function pythonLiteral(value: unknown): string {
  const words: Readonly<Record<string, string>> = { null: 'None', true: 'True', false: 'False' };
  const tokens = /"(?:[^"\\]|\\.)*"|null|true|false/g;
  return JSON.stringify(value, null, 2).replace(tokens, (token) => words[token] ?? token);
}

function javaScript(call: Call): string {
  const headers = headersOf(call, JSON.stringify, `\`Bearer \${TOKEN}\``, 'crypto.randomUUID()');
  const options = [
    ...(call.method === 'GET' ? [] : [`method: '${call.method}'`]),
    ...(headers.length > 0 ? [`headers: {\n${headers.map(([n, v]) => indented(`"${n}": ${v},`)).join('\n')}\n}`] : []),
    ...(call.body === undefined ? [] : [`body: JSON.stringify(${JSON.stringify(call.body, null, 2)})`]),
  ];
  const given = options.length > 0 ? `, {\n${options.map((each) => `${indented(each)},\n`).join('')}}` : '';
  return `const { ${variablesOf(call).join(', ')} } = process.env;
const reply = await fetch(\`\${BASE}${withVariables(call.path, (name) => `\${${name}}`)}\`${given});
if (!reply.ok) throw new Error(await reply.text());
console.log(await reply.json());`;
}

/** Power Query reads: with a token it can send GET only, and the first argument of Web.Contents must be constant. */
function powerQuery({ method, path, needsToken }: Call): string | undefined {
  if (method !== 'GET') return undefined;
  const parts = path.slice(1).split(/\{(\w+)\}/);
  const relative = parts.map((part, i) => (i % 2 === 1 ? part.toUpperCase() : part && `"${part}"`)).filter(Boolean);
  const options = [
    ...(path === '' ? [] : [`RelativePath = ${relative.join(' & ')}`]),
    ...(needsToken ? ['Headers = [Authorization = "Bearer " & TOKEN]'] : []),
  ];
  const given = options.length > 0 ? `, [${options.join(', ')}]` : '';
  return `Json.Document(Web.Contents(BASE${given}))`;
}

const indented = (text: string): string => text.replace(/^/gm, '    ');
