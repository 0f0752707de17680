import { writeFileSync } from 'node:fs';
import { pick } from '../base/members.js';
import { loadResources } from '../resource/definition/load.js';
import { apiVersion } from '../serve/http/render.js';
import { openapi } from '../serve/openapi/openapi.js';
import { docsPage } from '../serve/openapi/page.js';
import { documentSettings } from '../serve/openapi/values.js';
import { settingsOfApp } from './admin.js';
import { command, errLine, outLine, UsageError } from './command.js';

export const docsCommand = command({ out: { type: 'string' } }, async ({ out }) => {
  if (!out) throw new UsageError('--out FILE is missing.');
  const settings = settingsOfApp();
  const document = openapi(loadResources(settings.resourcesDir), {
    version: apiVersion,
    ...pick(settings, ...documentSettings),
  });
  writeFileSync(out, docsPage(document).html);
  outLine(`wrote ${out}`);
  if (settings.publicUrl === '') errLine('PUBLIC_URL is not set: the samples leave the address of the gateway open.');
  if (settings.primaryUrls === '') errLine('PRIMARY_URLS is not set: the page describes no writes.');
  return 0;
});
