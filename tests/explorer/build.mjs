// Makes the explorer's vendor.js, and the licences of what is in it, from the packages that package-lock.json pins.
//
//   npm ci --ignore-scripts && node build.mjs [folder]
//
// The two files are committed; tests/explorer/test_vendor.py makes them again and compares every byte.
import { build } from "esbuild";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? join(here, "../../src/core/dev/explorer/page");
const made = await build({
  absWorkingDir: here,
  entryPoints: ["entry.js"],
  outfile: join(folder, "vendor.js"),
  bundle: true,
  charset: "utf8",
  format: "esm",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
});

const packages = new Set();
for (const input of Object.keys(made.metafile.inputs)) {
  const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (found) packages.add(found[1]);
}
const parts = [];
for (const name of [...packages].sort()) {
  const place = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(place, "package.json"), "utf8"));
  const file = (await readdir(place)).find((one) => /^licen[cs]e/i.test(one));
  if (!file) throw new Error(`${name} has no file with its licence`);
  const text = (await readFile(join(place, file), "utf8")).replaceAll("\r\n", "\n").trim();
  parts.push(`${name} ${version} (${license})\n\n${text}\n`);
}
await writeFile(join(folder, "vendor.LICENSES.txt"), parts.join(`\n${"-".repeat(80)}\n\n`));
