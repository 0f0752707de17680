// `node spectral.mjs FILE…`: prints { rules, findings } as JSON: the names of our rules, and { code, path, message } of each finding per
// file.

import { readFileSync } from 'node:fs';
import spectralCore from '@stoplight/spectral-core';
import ruleset, { designRules } from './design-rules.mjs';

const { Ruleset, Spectral } = spectralCore;
const spectral = new Spectral();
spectral.setRuleset(new Ruleset(ruleset));
const findings = [];
for (const file of process.argv.slice(2)) {
  const results = await spectral.run(JSON.parse(readFileSync(file, 'utf8')));
  findings.push(results.map(({ code, path, message }) => ({ code, path: path.join('/'), message })));
}
console.log(JSON.stringify({ rules: Object.keys(designRules), findings }));
