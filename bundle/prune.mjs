import { existsSync, readdirSync, rmSync } from 'node:fs';

// Before the compiler, which keeps what it wrote for sources that are gone: a test that was removed must not run again.

for (const file of existsSync('dist') ? readdirSync('dist', { recursive: true }) : []) {
  const [, source] = /^(.*)\.js(?:\.map)?$/.exec(file) ?? [];
  if (source !== undefined && /^(?:src|demo|pull|test|bench|bundle)\//.test(file) && !existsSync(`${source}.ts`))
    rmSync(`dist/${file}`);
}
