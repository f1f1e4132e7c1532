// CPython, once per isolate: from a memory snapshot where the bundle has one, else from its files. The snapshot has the
// application in it, or only what is loaded before.
import { disguise, restore, serveFiles, serveGlue } from './shim.mjs';
import * as workers from 'cloudflare:workers';
import * as sockets from 'cloudflare:sockets';
import createPyodideModule from './pyodide.asm.mjs';
import { loadPyodide } from './pyodide.mjs';
import wasm from './pyodide.asm.wasm';
import stdlib from './python_stdlib.zip';
import site from './site.bin';
import { bundle, glue, snapshot } from './bundle.mjs';

restore();

const SITE = '/core';
// Read by `print` and `logging`, so that a log line is one line of workerd's own log.
const streams = {
  stdout: (line) => console.log(line),
  stderr: (line) => console.error(line),
};

/** Put the bundle's Python files where `sys.path` finds them. Nothing is copied: the files are views of one buffer. */
function mount(py) {
  const { FS } = py;
  const all = new Uint8Array(site);
  for (const folder of bundle.folders) FS.mkdirTree(`${SITE}/${folder}`);
  FS.mkdirTree(SITE);
  for (const [path, start, size] of bundle.files) {
    const cut = path.lastIndexOf('/');
    const parent = cut < 0 ? SITE : `${SITE}/${path.slice(0, cut)}`;
    FS.createDataFile(parent, path.slice(cut + 1), all.subarray(start, start + size), true, false, true);
  }
}

// What the platform's own SDK imports from its host, for applications that use it.
export const jsModules = {
  _pyodide_entrypoint_helper: {
    patchWaitUntil() {},
    cloudflareWorkersModule: workers,
    cloudflareSocketsModule: sockets,
    workerEntrypoint: workers.WorkerEntrypoint,
    doAnImport: (name) => import(name),
  },
  _cloudflare_compat_flags: {
    python_request_headers_preserve_commas: true,
    python_workflows_implicit_dependencies: true,
  },
};

let turn = 0;
let steps = 0;

/**
 * Run a callback of asyncio's loop: at once, as a microtask, where it is not for later. A Durable Object depends on it:
 * nothing may come between two steps of a method that only waits for storage, and a timer would let other calls in.
 * Something that goes on and on without waiting for anything (the clock stands still meanwhile) lets others in, too.
 */
function schedule(callback, milliseconds = 0) {
  if (milliseconds > 0) return void setTimeout(callback, milliseconds);
  const now = Date.now();
  if (now !== turn) [turn, steps] = [now, 0];
  if (++steps < 10_000) return void queueMicrotask(callback);
  steps = 0;
  setTimeout(callback, 0);
}

/** The memory image. The bundle has it without its empty pages: workerd copies a bundle several times as it starts. */
function image() {
  const whole = new Uint8Array(bundle.image.size);
  const left = new Uint8Array(snapshot);
  for (const [at, start, size] of bundle.image.pieces) whole.set(left.subarray(start, start + size), at);
  return whole;
}

// What a snapshot must not repeat in every isolate, and what it remembers of files that were not there yet.
// `importlib.invalidate_caches()` would import importlib.metadata for it, a fifth of a start.
const AFTER_RESTORE = `
def after_restore():
    import random, sys
    from importlib.machinery import FileFinder
    random.seed()
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, FileFinder):
            finder.invalidate_caches()
after_restore()
del after_restore`;

/**
 * Pyodide's module, with as much memory as the snapshot has, which an application may have grown while it was imported.
 * Pyodide asks for that itself with INITIAL_MEMORY, but its build defines its own memory, of 30 MiB, and does not look.
 */
const createModule = (image) => async (settings) => {
  const made = await createPyodideModule(settings);
  const [, header] = new Uint32Array(image.buffer, 0, 2);
  const size = image.length - header;
  if (size > made.HEAP8.length && made.growMemory(size) !== 1) {
    throw new RangeError(`no memory for a snapshot of ${size} bytes`);
  }
  return made;
};

/** Load Python, with the bundle's files. `build` is given only while a bundle is made: {compile, snapshot}. */
export async function load(build = {}) {
  const restoring = snapshot !== null;
  const restored = restoring ? image() : undefined;
  serveGlue(glue, build.compile);
  disguise();
  serveFiles(wasm, stdlib);
  let py;
  try {
    py = await loadPyodide({
      createPyodideModule: restoring ? createModule(restored) : createPyodideModule,
      indexURL: 'https://bundle.invalid/',
      lockFileContents: bundle.lock,
      ...streams,
      ...(build.snapshot ? { _makeSnapshot: true } : {}),
      ...(restoring
        ? { _loadSnapshot: restored, _snapshotDeserializer: (name) => jsModules[name] }
        : {}),
    });
  } finally {
    restore();
  }
  mount(py);
  if (restoring) {
    py.runPython(AFTER_RESTORE);
  } else {
    py.runPython(`import sys; sys.path.insert(0, ${JSON.stringify(SITE)}); del sys`);
    for (const [name, module] of Object.entries(jsModules)) py.registerJsModule(name, module);
  }
  if (!build.snapshot) {
    // A dead interpreter answers nothing ever again. The process ends with it, and the supervisor starts another.
    py._api.on_fatal = (error) => workers.abortIsolate(`Python died: ${String(error?.message ?? error).slice(0, 300)}`);
    py._api.scheduleCallback = schedule; // asked before every call that JSPI may suspend
    py.pyimport('pyodide.webloop').scheduleCallback = schedule;
  }
  return py;
}

/** The Python module that answers requests, with the application imported. */
export async function start(build) {
  const py = await load(build);
  const host = py.pyimport(bundle.host);
  host.start(bundle.main);
  return { py, host };
}
