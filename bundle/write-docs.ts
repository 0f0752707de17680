import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../src/base/paths.js';
import { prometheusRule } from './prometheus-rule.js';
import { settingsPage } from './settings-page.js';
import { troubleshootingHtml } from './troubleshooting-page.js';

// `npm run docs`: renews what is made from tables. test/docs.test.ts fails when it has not been run after a change.
writeFileSync(join(projectRoot, 'docs/reference/settings.md'), settingsPage());
writeFileSync(join(projectRoot, 'config/status/troubleshooting.html'), troubleshootingHtml());
writeFileSync(join(projectRoot, 'deploy/kubernetes/monitoring/rules.yaml'), prometheusRule());
