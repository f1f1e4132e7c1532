// Run a bundle under miniflare, which has the R2 service that workerd alone has not. Prints its address as JSON.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const [folder, installed] = process.argv.slice(2);
const require = createRequire(path.join(installed, 'package.json'));
const { Miniflare } = require('miniflare');
const KINDS = { esModule: 'ESModule', wasm: 'CompiledWasm', data: 'Data', text: 'Text' };

const { modules } = JSON.parse(fs.readFileSync(path.join(folder, 'manifest.json'), 'utf8'));
const miniflare = new Miniflare({
  host: '127.0.0.1',
  port: 0,
  compatibilityDate: '2026-04-01',
  modules: modules.map(({ name, kind, path: file }) => {
    const content = fs.readFileSync(path.join(folder, file));
    return { type: KINDS[kind], path: name, contents: kind === 'esModule' || kind === 'text' ? content.toString() : new Uint8Array(content) };
  }),
  r2Buckets: ['BUCKET', 'OTHER_BUCKET'],
});
const url = await miniflare.ready;
console.log(JSON.stringify({ port: Number(url.port) }));
process.stdin.resume();
process.stdin.on('end', async () => {
  await miniflare.dispose();
  process.exit(0);
});
