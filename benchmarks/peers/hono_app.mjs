// Hono on Node: the seven workloads through `app.fetch` with requests that are ready, microseconds each, as JSON.
//
// node hono_app.mjs FOLDER ROUNDS, where FOLDER holds node_modules/hono. Batches, rounds and the best tenth are those of
// benchmarks/in_process.py. The response's body is not read, as core's is not.
//
// node hono_app.mjs FOLDER serve PORT serves them, and rows of the SQLite file that CORE_BENCH_DATABASE names: over HTTP.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const require = createRequire(`${folder}/package.json`);
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const pick = (module, name) => module[name] ?? module.default[name];
const Hono = pick(await load("hono"), "Hono");
const cors = pick(await load("hono/cors"), "cors");
const logger = pick(await load("hono/logger"), "logger");
const requestId = pick(await load("hono/request-id"), "requestId");
const secureHeaders = pick(await load("hono/secure-headers"), "secureHeaders");

const ROWS = Array.from({ length: 10 }, (_, n) => ({ id: n, name: `user ${n}`, email: `user${n}@example.test` }));
const ORIGIN = "https://example.test";
const BODY = JSON.stringify({ name: "Ada Lovelace", email: "ada@example.test", age: 36 });

function build(four) {
  const app = new Hono();
  if (four) {
    app.use(requestId());
    app.use(logger(() => {}));
    app.use(secureHeaders({
      contentSecurityPolicy: { defaultSrc: ["'self'"] },
      permissionsPolicy: { geolocation: [], camera: [], microphone: [] },
      strictTransportSecurity: "max-age=31536000; includeSubDomains",
      xFrameOptions: "DENY", xXssProtection: "0", referrerPolicy: "strict-origin-when-cross-origin",
      crossOriginResourcePolicy: false, crossOriginOpenerPolicy: false, originAgentCluster: false,
      xDnsPrefetchControl: false, xDownloadOptions: false, xPermittedCrossDomainPolicies: false,
    }));
    app.use(cors({ origin: [ORIGIN] }));
  }
  app.get("/", (c) => c.text("hello"));
  app.get("/json", (c) => c.json({ message: "hello" }));
  app.get("/users/:id", (c) => c.json({ id: c.req.param("id") }));
  app.get("/full/users/:id", (c) => c.json({
    id: c.req.param("id"), page: Number(c.req.query("page")), limit: Number(c.req.query("limit")), rows: ROWS,
  }));
  if (process.env.CORE_BENCH_DATABASE) {
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
    const row = new DatabaseSync(process.env.CORE_BENCH_DATABASE).prepare("SELECT id, name, email FROM users WHERE id = ?");
    app.get("/rows/:id", (c) => c.json(row.get(Number(c.req.param("id")))));
  }
  app.post("/users", async (c) => {
    const v = await c.req.json();
    if (typeof v !== "object" || typeof v.name !== "string" || typeof v.email !== "string" || !Number.isInteger(v.age)) {
      return c.json({ error: "Validation failed" }, 422);
    }
    return c.json({ name: v.name, email: v.email, age: v.age }, 201);
  });
  app.get("/error", () => { throw new Error("secret"); });
  app.onError((_, c) => c.json({ error: "Internal Server Error" }, 500));
  app.notFound((c) => c.json({ error: "Not Found" }, 404));
  return app;
}

const numbered = (prefix) => Array.from({ length: 512 }, (_, n) => `${prefix}${n}`);
const WORKLOADS = {
  plaintext: [["/"], 200], json: [["/json"], 200], param: [numbered("/users/"), 200],
  full: [numbered("/full/users/").map((path) => `${path}?page=2&limit=10`), 200],
  post: [["/users"], 201], notfound: [numbered("/missing/"), 404], error: [["/error"], 500],
};
const HEADERS = {
  "user-agent": "bench/1.0", accept: "*/*", "accept-encoding": "gzip, deflate", origin: ORIGIN,
  "content-type": "application/json",
};
const make = (name, path) => new Request(ORIGIN + path, {
  method: name === "post" ? "POST" : "GET", headers: HEADERS, ...(name === "post" ? { body: BODY } : {}),
});

const plain = build(false), four = build(true);

if (process.argv[3] === "serve") {
  const { serve } = await load("@hono/node-server");
  const fetch = (request) => (request.url.includes("/full/") ? four : plain).fetch(request);
  serve({ fetch, port: Number(process.argv[4]), hostname: "127.0.0.1" });
} else {
  await measure(Number(process.argv[3]));
}

async function measure(rounds) {
  const times = {};
  for (const [name, [paths, status]] of Object.entries(WORKLOADS)) {
    const response = await (name === "full" ? four : plain).fetch(make(name, paths[0]));
    await response.text();
    if (response.status !== status) throw new Error(`${name}: ${response.status}`);
    times[name] = [];
  }
  const COUNT = 300;
  for (let round = 0; round < rounds + 20; round++) {
    for (const [name, [paths]] of Object.entries(WORKLOADS)) {
      const app = name === "full" ? four : plain;
      const requests = Array.from({ length: COUNT }, (_, n) => make(name, paths[(round * COUNT + n) % paths.length]));
      const begin = performance.now();
      for (const request of requests) await app.fetch(request);
      if (round >= 20) times[name].push(((performance.now() - begin) * 1000) / COUNT);
    }
  }
  const best = (list) => {
    const kept = list.sort((a, b) => a - b).slice(0, Math.max(1, Math.floor(list.length / 10)));
    return kept.reduce((a, b) => a + b) / kept.length;
  };
  console.log(JSON.stringify(Object.fromEntries(Object.entries(times).map(([name, list]) => [name, best(list)]))));
}
