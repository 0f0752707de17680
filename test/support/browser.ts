import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { toolsFolder, toolsMissing } from './client-tools.js';

const chromium = '/usr/bin/chromium';
export const browserMissing = toolsMissing || (existsSync(chromium) ? '' : ' (skipped: install the package chromium)');

const flags =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync';

export interface Browser {
  newContext(options: object): Promise<{
    newPage(): Promise<Page>;
  }>;
  close(): Promise<void>;
}
export interface Page {
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
  goto(address: string): Promise<unknown>;
  evaluate<T>(expression: string): Promise<T>;
  click(selector: string): Promise<void>;
  fill(selector: string, text: string): Promise<void>;
  setViewportSize(size: { readonly width: number; readonly height: number }): Promise<void>;
  emulateMedia(media: { readonly colorScheme: 'light' | 'dark' }): Promise<void>;
  screenshot(options: { readonly path: string; readonly fullPage?: boolean }): Promise<unknown>;
  on(event: 'console', listener: (message: { type(): string; text(): string }) => void): void;
  on(event: 'pageerror', listener: (error: Error) => void): void;
  on(event: 'request', listener: (request: { url(): string }) => void): void;
}

export interface OpenPage {
  readonly page: Page;
  readonly faults: readonly string[];
}

export async function launchBrowser(): Promise<Browser> {
  const load = createRequire(join(toolsFolder, 'package.json'));
  const playwright = load('playwright-core') as { chromium: { launch(options: object): Promise<Browser> } };
  return playwright.chromium.launch({ executablePath: chromium, args: flags.split(' ') });
}

export async function openPage(
  browser: Browser,
  address: string,
  viewport = { width: 1280, height: 900 },
): Promise<OpenPage> {
  const context = await browser.newContext({ viewport, permissions: ['clipboard-read', 'clipboard-write'] });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(address).origin) faults.push(`request to ${request.url()}`);
  });
  await page.goto(address);
  return { page, faults };
}

export async function seriousFindings(page: Page, rules?: readonly string[]): Promise<string[]> {
  await page.evaluate(readFileSync(join(toolsFolder, 'node_modules/axe-core/axe.min.js'), 'utf8'));
  const options = JSON.stringify(rules === undefined ? {} : { runOnly: rules });
  const { violations } = await page.evaluate<{ violations: AxeFinding[] }>(`axe.run(${options})`);
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html)}`);
}

interface AxeFinding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

export function overflowing(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('body *')].filter((element) => {
    if (element.getBoundingClientRect().right <= document.documentElement.clientWidth + 1) return false;
    for (let each = element.parentElement; each !== null; each = each.parentElement)
      if (['auto', 'scroll'].includes(getComputedStyle(each).overflowX)) return false;
    return true;
  }).map((element) => element.outerHTML.slice(0, 100))`);
}
