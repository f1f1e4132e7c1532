// What only a build asks of a worker: capture the adapters that pyodide compiles and the bytecode of its library, look at
// the application while it is imported, and take the memory snapshot. It is the main module of a build's worker, and is in
// no bundle.
export * from './entry.mjs';
import { load, start, jsModules } from './boot.mjs';
import { bundle } from './bundle.mjs';
import compiled from './compiled.py';
import inspection from './inspection.py';

/**
 * Load Python, use every kind of call that crosses over, and tell which adapters were compiled on the way; then load the
 * framework, and give the bytecode of the standard library's modules that are loaded by now.
 */
async function prepare(env) {
  const found = {};
  const compile = (key, bytes) => {
    found[key] = true;
    return env.UNSAFE_EVAL.newWasmModule(bytes);
  };
  const py = await load({ compile });
  await py.runPythonAsync(`
import asyncio, js
from pyodide.ffi import can_run_sync, create_once_callable, create_proxy, run_sync, to_js
await asyncio.sleep(0)
proxy = create_proxy(lambda *args: sum(args))
js.Promise.resolve(1).then(proxy)
run_sync(js.Promise.resolve(1))
await js.Promise.resolve(1)
proxy.destroy()
`);
  const sync = py.runPython('from pyodide.ffi import run_sync\nimport js\nlambda: run_sync(js.Promise.resolve(1))');
  await sync.callPromising();
  py.pyimport(bundle.host);
  const library = JSON.parse(py.runPython(`${inspection}\njson.dumps(library())`));
  return Response.json({ adapters: Object.keys(found), library });
}

async function inspect(env) {
  const py = await load();
  const look = py.runPython(`${inspection}\ninspect`);
  try {
    return new Response(look(bundle.host, bundle.main, env), { headers: { 'content-type': 'application/json' } });
  } finally {
    look.destroy();
  }
}

async function examine(env) {
  const py = await load();
  return new Response(py.runPython(`${compiled}\nexamine`)(env.CORE_COMPILED));
}

/** The memory once everything is imported. */
async function snapshot() {
  const { py, host } = await start({ snapshot: true });
  host.preload?.();
  const serializer = (value) => {
    for (const [name, module] of Object.entries(jsModules)) if (module === value) return name;
    throw new Error(`a JavaScript object is held since import time: ${Object.prototype.toString.call(value)}`);
  };
  py.runPython('import gc; gc.collect()');
  return new Response(py.makeMemorySnapshot({ serializer }));
}

const jobs = {
  '/prepare': prepare,
  '/inspect': inspect,
  '/examine-compiled': examine,
  '/snapshot': snapshot,
};

export default {
  async fetch(request, env) {
    try {
      return await jobs[new URL(request.url).pathname](env);
    } catch (error) {
      return new Response(String(error?.stack ?? error), { status: 500 });
    }
  },
};
