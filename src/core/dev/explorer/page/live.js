// The application as it is now, and its requests as they happen; again after the server was reloaded.
import { call, changed, send, store } from "./core.js";

const KEPT = 5000;

function note(exchanges) {
  let sorted = true;
  for (const one of exchanges) {
    if (!store.exchanges.has(one.key)) {
      sorted &&= !store.order.length || store.order[0].time <= one.time;
      store.order = [one, ...store.order];
    }
    store.exchanges.set(one.key, one);
  }
  if (!sorted) store.order.sort((one, other) => other.time - one.time);
  store.order = store.order.slice(0, KEPT).map((one) => store.exchanges.get(one.key));
  if (store.exchanges.size > KEPT * 1.2) store.exchanges = new Map(store.order.map((one) => [one.key, one]));
  changed();
}

async function refresh() {
  const given = await call("/overview");
  // A program that cannot be loaded has no bindings, and its panels would go with what is typed in them.
  const overview = given.failed && store.overview ? { ...store.overview, failed: given.failed } : given;
  store.overview = { bindings: [], routes: [], queues: [], crons: [], notices: [], ...overview };
  changed();
  const known = store.order[0];
  let before = null;
  do {
    const page = await call(`/exchanges${before ? `?before=${before}` : ""}`);
    const missing = page.exchanges.filter((one) => !store.exchanges.has(one.key) || store.exchanges.get(one.key).duration !== one.duration);
    for (const one of missing) store.exchanges.set(one.key, one);
    ({ before } = page);
    if (known && !missing.length) break;
  } while (before);
  store.order = [...store.exchanges.values()].sort((one, other) => other.time - one.time).slice(0, KEPT);
  store.read = true;
  changed();
}

// The first line says that changes are followed from now on: what was before it is asked for then, so that nothing is missed.
async function listen() {
  const caller = new AbortController();
  try {
    const response = await send("/live", { signal: caller.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", followed = false;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!followed) {
          await refresh();
          followed = true;
          if (store.overview.failed === null) store.loads += 1;
          store.live = "live";
          changed();
        }
        note(JSON.parse(line));
      }
    }
  } finally { caller.abort(); }
}

export async function follow() {
  for (;;) {
    try {
      await listen();
    } catch (error) {
      if (error.status === 403) {
        store.live = "The token is out of date: open the explorer anew";
        changed();
        return;
      }
    }
    store.live = "reconnecting";
    changed();
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

export function forget() {
  store.exchanges = new Map();
  store.order = [];
  changed();
}
