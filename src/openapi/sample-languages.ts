/** A request to sample, before any language. */
export interface Call {
  readonly method: string;
  /** Path behind BASE, with parameters such as `{id}`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly needsToken: boolean;
  /** A JSON value; undefined for none. */
  readonly body: unknown;
}

/** A language of samples: its key on the page, its name, and a call written in it; undefined where it cannot make the call. */
type Language = readonly [key: string, name: string, sample: (call: Call) => string | undefined];

export const sampleLanguages: readonly Language[] = [
  ['curl', 'curl', curl],
  ['python', 'Python', python],
  ['javascript', 'JavaScript', javaScript],
  ['powerquery', 'Power Query', powerQuery],
];

/** A new key for each run; to repeat a request whose answer was lost, a program must send the same key. */
const freshKeys: Readonly<Record<string, string>> = {
  curl: '$(uuidgen)',
  python: 'str(uuid.uuid4())',
  javascript: 'crypto.randomUUID()',
};

/** The path with its parameters, such as `{id}`, as the language writes the variable ID. */
const withVariables = (path: string, write: (name: string) => string): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => write(name.toUpperCase()));

const variablesOf = ({ path, needsToken }: Call): string[] => [
  'BASE',
  ...(needsToken ? ['TOKEN'] : []),
  ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => (name as string).toUpperCase()),
];

/** The header fields as lines of a language: `write` gets a name and an expression. */
function headerLines(call: Call, key: string, quote: (text: string) => string, bearer: string): [string, string][] {
  const own = Object.entries(call.headers).map(([name, value]): [string, string] => [
    name,
    name === 'Idempotency-Key' ? (freshKeys[key] as string) : quote(value),
  ]);
  return call.needsToken ? [['Authorization', bearer], ...own] : own;
}

function curl(call: Call): string {
  const query = new URLSearchParams(call.query).toString();
  const address = `"$BASE${withVariables(call.path, (name) => `$${name}`)}${query && `?${query}`}"`;
  const lines = [`curl ${call.method === 'GET' ? '' : `-X ${call.method} `}${address}`];
  for (const [name, value] of headerLines(call, 'curl', (text) => text, 'Bearer $TOKEN'))
    lines.push(value.includes('"') ? `-H '${name}: ${value}'` : `-H "${name}: ${value}"`);
  if (call.body !== undefined) lines.push(`-d '${JSON.stringify(call.body, null, 2).replaceAll("'", "'\\''")}'`);
  return lines.join(' \\\n  ');
}

function python(call: Call): string {
  const variables = variablesOf(call);
  const values = variables.map((name) => `os.environ["${name}"]`);
  const headers = headerLines(call, 'python', JSON.stringify, 'f"Bearer {TOKEN}"').filter(
    ([name]) => name !== 'Content-Type', // json= sets it
  );
  const modules = ['os', 'requests', ...(headers.some(([, value]) => value.startsWith('str(uuid')) ? ['uuid'] : [])];
  const query = Object.entries(call.query).map(([name, value]) => `"${name}": ${value}`);
  const lines = [
    `f"{BASE}${withVariables(call.path, (name) => `{${name}}`)}"`,
    ...(query.length > 0 ? [`params={${query.join(', ')}}`] : []),
    ...(headers.length > 0 ? [`headers={${headers.map(([name, value]) => `"${name}": ${value}`).join(', ')}}`] : []),
    ...(call.body === undefined ? [] : [`json=${pythonLiteral(call.body)}`]),
    'timeout=60',
  ];
  return `import ${modules.join(', ')}

${variables.join(', ')} = ${values.join(', ')}
reply = requests.${call.method.toLowerCase()}(
${lines.map((line) => indented(line)).join(',\n')},
)
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
  const query = new URLSearchParams(call.query).toString();
  const address = `\`\${BASE}${withVariables(call.path, (name) => `\${${name}}`)}${query && `?${query}`}\``;
  const headers = headerLines(call, 'javascript', JSON.stringify, `\`Bearer \${TOKEN}\``);
  const options = [
    ...(call.method === 'GET' ? [] : [`method: '${call.method}'`]),
    ...(headers.length > 0 ? [`headers: {\n${headers.map(([n, v]) => indented(`"${n}": ${v},`)).join('\n')}\n}`] : []),
    ...(call.body === undefined ? [] : [`body: JSON.stringify(${JSON.stringify(call.body, null, 2)})`]),
  ];
  const given = options.length > 0 ? `, {\n${options.map((each) => `${indented(each)},`).join('\n')}\n}` : '';
  return `const { ${variablesOf(call).join(', ')} } = process.env;
const reply = await fetch(${address}${given});
if (!reply.ok) throw new Error(await reply.text());
console.log(await reply.json());`;
}

/** Power Query reads: with a token it can send GET only, and the first argument of Web.Contents must be constant. */
function powerQuery(call: Call): string | undefined {
  if (call.method !== 'GET') return undefined;
  const path = call.path
    .slice(1)
    .split(/\{(\w+)\}/)
    .map((part, i) => (i % 2 === 1 ? part.toUpperCase() : part && `"${part}"`));
  const query = Object.entries(call.query).map(([name, value]) => `${name} = "${value}"`);
  const options = [
    ...(call.path === '' ? [] : [`RelativePath = ${path.filter(Boolean).join(' & ')}`]),
    ...(query.length > 0 ? [`Query = [${query.join(', ')}]`] : []),
    ...(call.needsToken ? ['Headers = [Authorization = "Bearer " & TOKEN]'] : []),
  ];
  const given = options.length > 0 ? `, [\n${options.map((each) => `    ${each}`).join(',\n')}\n  ]` : '';
  return `let
  Reply = Json.Document(Web.Contents(BASE${given}))
in
  ${'perPage' in call.query ? 'Table.FromRecords(Reply[data], null, MissingField.UseNull)' : 'Reply'}`;
}

const indented = (text: string): string => text.replace(/^/gm, '    ');
