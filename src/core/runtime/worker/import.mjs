// Writes the objects of a backup into a cluster, for the command that started this process and nobody else.
import { DurableObject } from 'cloudflare:workers';

export default {
  async fetch(request, env) {
    if (request.headers.get('authorization') !== env.TOKEN) return new Response('', { status: 403 });
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/file') {
      return env.BUCKET.fetch(`http://bucket/${searchParams.get('path')}`, { method: 'PUT', body: request.body });
    }
    try {
      const { namespace, name, id, ...part } = await request.json();
      const ids = env[namespace];
      const object = ids.get(name === null ? ids.idFromString(id) : ids.idFromName(name));
      return Response.json(await object.write({ ...part, values: await read(env, part.values) }));
    } catch (error) {
      return Response.json({ error: String(error?.message ?? error) });
    }
  },
  // The runtime reads the form in which values are stored where it delivers a message, and nowhere else.
  queue(batch) {
    decoded.set(batch.messages[0].id, batch.messages.map(({ body }) => body));
  },
};

const decoded = new Map();

/** The values of a list of [key, bytes in base64], with their keys. */
async function read(env, pairs) {
  if (pairs.length === 0) return [];
  const id = crypto.randomUUID();
  const timestamp = new Date();
  const messages = pairs.map(([, text]) => ({ id, timestamp, attempts: 1, serializedBody: Uint8Array.fromBase64(text) }));
  const { outcome } = await env.SELF.queue('values', messages);
  const found = decoded.get(id);
  decoded.delete(id);
  if (outcome !== 'ok' || found === undefined) throw new Error('its values cannot be read');
  return pairs.map(([key], at) => [key, found[at]]);
}

/** In an object until it is whole: one that was begun is told by it from one that others wrote. */
const MARK = 'core:import';

class Imported extends DurableObject {
  /**
   * One part of an object, in one transaction: the `first` one makes it empty of what an earlier attempt began, and
   * writes nothing where there is anything else. The answer to the first and the last one says how much there is.
   */
  async write({ first, values, statements, last, alarm }) {
    const { storage } = this.ctx;
    if (first) {
      if (storage.kv.get(MARK) !== undefined) await storage.deleteAll();
      const there = this.counts();
      if (there.values > 0 || Object.keys(there.tables).length > 0) return { there };
    }
    // Rows may come before those that they refer to, and in another transaction. It is for this connection alone.
    storage.sql.exec('PRAGMA foreign_keys = OFF');
    storage.transactionSync(() => {
      for (const [key, value] of values) storage.kv.put(key, value);
      for (const [sql, rows] of statements) {
        for (const row of rows) storage.sql.exec(sql, ...row.map((value) => value?.b === undefined ? value : Uint8Array.fromBase64(value.b)));
      }
      if (last) storage.kv.delete(MARK);
      else storage.kv.put(MARK, true);
    });
    if (!last) return {};
    if (alarm !== null) await storage.setAlarm(alarm);
    await storage.sync();
    return { written: this.counts() };
  }

  counts() {
    const { sql, kv } = this.ctx.storage;
    const names = sql.exec(
      `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
       AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`,
    );
    const tables = {};
    for (const { name } of [...names]) {
      tables[name] = sql.exec(`SELECT count(*) AS n FROM "${name.replaceAll('"', '""')}"`).one().n;
    }
    let values = 0;
    for (const [key] of kv.list()) values += key === MARK ? 0 : 1;
    return { tables, values };
  }

  /** It is for the application: it waits until a node has the object. */
  alarm() {
    return this.ctx.storage.setAlarm(Date.now() + 10_000);
  }
}
