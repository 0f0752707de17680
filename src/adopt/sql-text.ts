// Names of the catalog enter the SQL of a draft in three ways: as PostgreSQL quotes them (`quoted`), in a comment, and in a text.

/** A comment of one line: what a name says in it is never SQL. */
export function comment(text: string): string {
  return `-- ${text.replace(/[\r\n]+/g, ' ')}`;
}

/** Comment lines that \`grep -rn OPEN:\` finds. */
export function openLines(points: readonly string[]): string[] {
  return points.map((point) => comment(`OPEN: ${point}`));
}

export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The body of a function between dollar quotes that it does not hold itself. */
export function dollarQuoted(body: string): string {
  let quote = '$$';
  for (let n = 1; body.includes(quote); n++) quote = `$body${n}$`;
  return `${quote}${body}${quote}`;
}
