import { exportWorkspace } from '../operate/export/export.js';
import { settingsOfApp } from './admin.js';
import { command, outLine, showProgress, UsageError } from './command.js';

const text = { type: 'string' } as const;

export const exportCommand = command(
  { workspace: text, out: text, resources: text, from: { ...text, default: 'replica' }, gzip: { type: 'boolean' } },
  async ({ workspace, out, resources = '', from, gzip = false }) => {
    if (workspace === undefined || out === undefined) throw new UsageError('export needs --workspace and --out.');
    if (from !== 'replica' && from !== 'primary') throw new UsageError('--from takes replica or primary.');
    const names = resources.split(',').flatMap((name) => name.trim() || []);
    const { onProgress, end } = progressLine();
    const manifest = await exportWorkspace(settingsOfApp(), {
      ...{ workspace, out, resources: names, from, gzip, onProgress },
    }).finally(end);
    const { server, takenAt } = manifest.snapshot;
    outLine(`Workspace ${workspace} as of ${takenAt}, from ${server}:`);
    for (const { file, records, bytes } of manifest.files) outLine(`  ${file}: ${records} records, ${bytes} bytes`);
    outLine(`Written to ${out}, with manifest.json.`);
    return 0;
  },
);

function progressLine() {
  let shownMs = 0;
  return {
    onProgress: (resource: string, records: number) => {
      if (performance.now() - shownMs < 100) return;
      shownMs = performance.now();
      showProgress(`${resource}: ${records} records`);
    },
    end: () => showProgress(''),
  };
}
