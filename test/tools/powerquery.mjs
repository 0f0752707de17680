// `node powerquery.mjs FILE…`: reads Power Query programs with Microsoft's own parser and prints as JSON, for each call of
// Web.Contents in them, the kind and text of its first argument and the names of the options in its second.

import { readFileSync } from 'node:fs';
import parser from '@microsoft/powerquery-parser';

const { DefaultSettings, TaskUtils } = parser;

/** All nodes of a tree. */
const nodesOf = (node) => (node && typeof node === 'object' ? [node, ...Object.values(node).flatMap(nodesOf)] : []);

/** Each argument of a call, without the commas between them. */
const argumentsOf = ({ recursiveExpressions: { elements } }) => elements[0].content.elements.map(({ node }) => node);

const calls = [];
for (const file of process.argv.slice(2)) {
  const task = await TaskUtils.tryLexParse(DefaultSettings, readFileSync(file, 'utf8'));
  if (task.stage !== 'Parse' || task.resultKind !== 'Ok') throw new Error(`${file}: ${task.error?.message}`);
  for (const node of nodesOf(task.ast)) {
    if (node.kind !== 'RecursivePrimaryExpression' || node.head.identifier?.literal !== 'Web.Contents') continue;
    const [address, options] = argumentsOf(node);
    const names = (options?.content.elements ?? []).map((option) => option.node.key.literal);
    calls.push({
      kind: address.kind,
      literalKind: address.literalKind,
      text: address.literal ?? address.identifier?.literal,
      names,
    });
  }
}
console.log(JSON.stringify(calls));
