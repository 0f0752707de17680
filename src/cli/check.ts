import { type Finding, findingAt, type Level, titleOf, warning } from '../doctor/finding.js';
import { inspect } from '../doctor/inspect.js';
import { countRows } from '../operate/adopt/rows.js';
import { loadResources } from '../resource/definition/load.js';
import { misspeltNames } from '../settings.js';
import { adminUrl, settingsOfApp } from './admin.js';
import { command, outLine, outText } from './command.js';

export const check = command({ json: { type: 'boolean' }, rows: { type: 'boolean' } }, async ({ json, rows }) => {
  const settings = settingsOfApp();
  const resources = loadResources(settings.resourcesDir);
  const counted = rows ? await countRows(adminUrl(), resources) : undefined;
  const findings = [
    ...misspeltNames(process.env).map((sentence) => findingAt('settings', warning('environment', sentence))),
    ...(await inspect(settings, resources, 'all')).findings,
    ...(counted?.items ?? []).map((item) => findingAt('rows', item)),
  ];
  const isOk = !findings.some(({ level }) => level === 'failed' || level === 'refused');
  if (json) outText(JSON.stringify({ ok: isOk, findings, ...(counted && { rows: counted.ledgers }) }, null, 2));
  else for (const line of report(findings)) outLine(line);
  return isOk ? 0 : 1;
});

const marks: Readonly<Record<Level, string>> = {
  ok: 'ok     ',
  warning: 'WARNING',
  failed: 'FAILED ',
  refused: 'REFUSED',
};

function report(findings: readonly Finding[]): string[] {
  const lines = findings.flatMap((finding, i) => [
    ...(finding.where === findings[i - 1]?.where ? [] : [finding.where]),
    `  ${marks[finding.level]}  ${titleOf(finding)}: ${finding.detail}`,
    ...(finding.advice === '' ? [] : [`           ${finding.advice}`]),
  ]);
  return [...lines, summary(findings)];
}

function summary(findings: readonly Finding[]): string {
  const wrong = findings.filter(({ level }) => level !== 'ok');
  if (wrong.length === 0) return 'All is well.';
  const warnings = wrong.filter(({ level }) => level === 'warning').length;
  if (warnings === wrong.length) return `No item failed; warnings: ${warnings}.`;
  return `${wrong.length} of ${findings.length} are not ok.`;
}
