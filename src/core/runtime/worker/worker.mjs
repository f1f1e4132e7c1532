// The worker's events, handed to Python.
import { start } from './boot.mjs';
import { DurableObject, env as bindings, WorkerEntrypoint } from 'cloudflare:workers';

let loading;
let ready;
let PyAwaitable;

/** One boot for all. It runs under `waitUntil`: a first client that hangs up must not take it down with it. */
function boot(ctx) {
  loading ??= start().then((python) => {
    ({ PyAwaitable } = python.py.ffi);
    ready = python;
  });
  ctx.waitUntil(loading.catch(() => {}));
  return loading;
}

// Set while the supervisor has migrations to apply: what arrives meanwhile waits. Each one asks by itself, since a
// promise of one request is not to be settled by another.
let closed = bindings.CORE_CLOSED !== undefined;

async function opened() {
  while (closed) await scheduler.wait(10);
}

/** An event, once there is nothing left to wait for. */
function event(...given) {
  return closed ? opened().then(() => call(...given)) : call(...given);
}

// When workerd is told to stop, it cuts off every connection that is kept and has no request, as far as it knows: one that
// arrived while Python was busy is lost, unread. A request that it is answering then is answered, and the answer says
// `Connection: close`. So those that arrive shortly before are held until workerd has been told.
let held = 0; // for so many times 10 ms; the time in which Python is busy, and workerd sees no signal, does not count
let left = false; // the supervisor has been answered that nothing is in the way of a stop

async function released() {
  while (held > 0) await scheduler.wait(10);
}

async function count() {
  for (; held > 0; held -= 1) await scheduler.wait(10);
}

/** Call into Python, let JSPI suspend it, and give back what it answers; the proxy of a task is destroyed. */
function call(ctx, name, ...args) {
  if (ready === undefined) return boot(ctx).then(() => call(ctx, name, ...args));
  const handler = handlers[name] ?? (handlers[name] = ready.host[name]);
  const result = handler(...args);
  if (!(result instanceof PyAwaitable)) return result;
  waiting += 1;
  // The handler is waiting for something. It runs to its end even if its client goes away meanwhile.
  const done = finish(result);
  ctx.waitUntil(done.catch(() => {}));
  return done;
}
const handlers = {};
let waiting = 0; // calls that Python has not answered

async function finish(task) {
  try {
    return await task;
  } finally {
    waiting -= 1;
    task.destroy();
  }
}

// workerd writes the Host header into the URL as it came, so a slash would move where the path begins
// (RFC 9112, section 3.2: such a request is answered 400).
const NOT_IN_HOST = /[/\\]/;
// What a proxy said in the header that names the scheme is in the URL as it came, too.
const SCHEME = /^https?:/;

function fetch(request, env, ctx) {
  if (NOT_IN_HOST.test(request.headers.get('host'))) {
    return Response.json({ error: 'Malformed Host header' }, { status: 400 });
  }
  const { method, url } = request;
  if (!SCHEME.test(url)) {
    return Response.json({ error: 'Malformed forwarded scheme' }, { status: 400 });
  }
  // An object that crosses over costs about 5 µs, so these cross as one, and each when it is asked for.
  const given = { request, env, ctx, received: performance.now() };
  if (held > 0) return released().then(() => event(ctx, 'fetch', given, method, url));
  return event(ctx, 'fetch', given, method, url);
}

export default {
  fetch,
  queue: (batch, env, ctx) => event(ctx, 'queue', batch, env, ctx),
  scheduled: (trigger, env, ctx) => event(ctx, 'scheduled', trigger, env, ctx),
};

/**
 * Whether this isolate can answer: Python is loaded, the application imported, every binding there. It listens for the
 * supervisor alone, which also has it apply SQL migrations, and let events in after that.
 */
export class Health extends WorkerEntrypoint {
  async fetch(request) {
    try {
      if (request.method === 'POST') {
        const { pathname } = new URL(request.url);
        if (pathname === '/open') {
          closed = false;
          return Response.json({});
        }
        if (pathname === '/leave') {
          const { hold } = await request.json();
          // From before streams end: their clients may ask again at once.
          held = hold / 10;
          this.ctx.waitUntil(count());
          await leave(this.ctx, this.env);
          // What is on its way arrives, and Python answers what came earlier.
          while (held > hold / 12 || (waiting > 0 && held > hold / 30)) await scheduler.wait(10);
          left = true;
          return Response.json({});
        }
        const given = await request.text();
        if (pathname === '/spans') while (JSON.parse(given).last && !left) await scheduler.wait(10);
        return new Response(await call(this.ctx, 'asked', pathname.slice(1), this.env, given));
      }
      const problems = await call(this.ctx, 'problems', this.env);
      return Response.json(problems ? { status: 'failing', problems } : { status: 'ok' }, { status: problems ? 503 : 200 });
    } catch (error) {
      return Response.json({ status: 'failing', problems: String(error?.message ?? error) }, { status: 503 });
    }
  }
}

/** End what would go on for ever, since the process is about to stop: WebSockets, and streams of events. */
async function leave(ctx, env) {
  const ids = await call(ctx, 'go_away');
  const namespaces = Object.values(env).filter((binding) => typeof binding?.idFromString === 'function');
  const closing = [];
  for (const id of ids) {
    for (const namespace of namespaces) {
      let known;
      try {
        known = namespace.idFromString(id);
      } catch {
        continue; // of another namespace
      }
      closing.push(namespace.get(known)[CLOSE_SOCKETS]());
      break;
    }
  }
  await Promise.allSettled(closing);
}

const CLOSE_SOCKETS = 'core:close-sockets';

const instances = new WeakMap();

// The Python instance of each object, by its id: an object that is evicted says nothing, and leaves its instance behind.
const living = new Map();

// The events of the sockets that an object has accepted, under the names that the runtime calls.
const socketEvents = {
  webSocketMessage: 'web_socket_message',
  webSocketClose: 'web_socket_close',
  webSocketError: 'web_socket_error',
};
const OF_SOCKETS = new Set(Object.values(socketEvents));

/** The JavaScript class of a Durable Object whose methods are Python's; `methods` are those that it has there. */
export function durableObject(name, methods) {
  class PythonObject extends DurableObject {
    constructor(ctx, env) {
      super(ctx, env);
      ctx.blockConcurrencyWhile(async () => {
        const id = `${name} ${ctx.id}`;
        living.get(id)?.destroy();
        living.delete(id);
        const made = await call(ctx, 'durable_object', name, ctx, env);
        if (made?.thrown_by_core === true) throw made;
        living.set(id, made);
        instances.set(this, made);
      });
    }
  }
  for (const [event_, method] of Object.entries(socketEvents)) {
    PythonObject.prototype[event_] = function (...args) {
      return event(this.ctx, 'durable_object_call', instances.get(this), method, ...args);
    };
  }
  PythonObject.prototype[CLOSE_SOCKETS] = function () {
    for (const socket of this.ctx.getWebSockets()) {
      socket.closed_by_stop = true;
      socket.close(1001, 'the server stops');
    }
  };
  for (const method of methods) {
    if (OF_SOCKETS.has(method)) continue; // for the runtime to call, and for no stub
    PythonObject.prototype[method] = async function (...args) {
      const result = await event(this.ctx, 'durable_object_call', instances.get(this), method, ...args);
      if (result?.thrown_by_core !== true) return result;
      delete result.thrown_by_core;
      throw result;
    };
  }
  Object.defineProperty(PythonObject, 'name', { value: name });
  return PythonObject;
}
