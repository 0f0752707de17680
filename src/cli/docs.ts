import { writeFileSync } from 'node:fs';
import { pick } from '../base/members.js';
import { loadResources } from '../resource/definition/load.js';
import { apiVersion } from '../serve/http/render.js';
import { makeDocsPage } from '../serve/openapi/docs-page.js';
import { makeOpenApi } from '../serve/openapi/openapi.js';
import { documentSettings } from '../serve/openapi/values.js';
import { makeCommand, printError, printLine, UsageError } from './command.js';
import { readSettingsOfApp } from './required-settings.js';

export const docsCommand = makeCommand({ out: { type: 'string' } }, async ({ out }) => {
  if (!out) throw new UsageError('--out FILE is missing.');
  const settings = readSettingsOfApp();
  const document = makeOpenApi(loadResources(settings.resourcesDir), {
    version: apiVersion,
    ...pick(settings, ...documentSettings),
  });
  writeFileSync(out, makeDocsPage(document).html);
  printLine(`wrote ${out}`);
  if (settings.publicUrl === '')
    printError('PUBLIC_URL is not set: the samples leave the address of the gateway open.');
  if (settings.primaryUrls === '') printError('PRIMARY_URLS is not set: the page describes no writes.');
  return 0;
});
