import { type Finding, getTitle, type Level, makeItem, placeItem } from '../doctor/finding.js';
import { inspect } from '../doctor/inspect.js';
import { countShown } from '../operate/adopt/rows.js';
import { loadResources } from '../resource/definition/load.js';
import { listMisspeltNames } from '../settings.js';
import { makeCommand, makeOptions, printLine, printText } from './command.js';
import { readAdminUrl, readSettingsOfApp } from './required-settings.js';

export const checkCommand = makeCommand(makeOptions('boolean', 'json', 'rows'), async ({ json, rows }) => {
  const settings = readSettingsOfApp();
  const resources = loadResources(settings.resourcesDir);
  const counted = rows ? await countShown(readAdminUrl(), resources) : undefined;
  const findings = [
    ...listMisspeltNames(process.env).map((text) => placeItem('settings', makeItem('warning', 'environment', text))),
    ...(await inspect(settings, resources, 'all')).findings,
    ...(counted?.items ?? []).map((item) => placeItem('rows', item)),
  ];
  const isOk = !findings.some(({ level }) => level === 'failed' || level === 'refused');
  if (json) printText(JSON.stringify({ ok: isOk, findings, ...(counted && { rows: counted.ledgers }) }, null, 2));
  else for (const line of listLines(findings)) printLine(line);
  return isOk ? 0 : 1;
});

const formatLevel = (level: Level): string => (level === 'ok' ? level : level.toUpperCase()).padEnd(7);

function listLines(findings: readonly Finding[]): string[] {
  const lines = findings.flatMap((finding, i) => [
    ...(finding.where === findings[i - 1]?.where ? [] : [finding.where]),
    `  ${formatLevel(finding.level)}  ${getTitle(finding)}: ${finding.detail}`,
    ...(finding.advice === '' ? [] : [`           ${finding.advice}`]),
  ]);
  return [...lines, summarizeFindings(findings)];
}

function summarizeFindings(findings: readonly Finding[]): string {
  const wrong = findings.filter(({ level }) => level !== 'ok');
  if (wrong.length === 0) return 'All is well.';
  const warnings = wrong.filter(({ level }) => level === 'warning').length;
  if (warnings === wrong.length) return `No item failed; warnings: ${warnings}.`;
  return `${wrong.length} of ${findings.length} are not ok.`;
}
