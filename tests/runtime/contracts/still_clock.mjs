// workerd's own queues, by a clock that stands still until a test moves it: how long a call takes says how busy the
// machine is, and nothing of a queue. What is due is delivered by alarms, and those keep the machine's clock: with each
// move the still time is set to the machine's, and the service's own test clock makes up for the difference.
import service, { QueueShard } from "queues.js";

export { QueueShard };

const real = Date.now;
let still = 0;
let skew = 0;
Date.now = () => still || real();

export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname !== "/clock") return service.fetch(request, env, ctx);
    const now = Date.now() + skew + Number(url.searchParams.get("advance"));
    still = real();
    const moved = now - still - skew;
    skew += moved;
    return service.fetch(new Request(`http://service/clock?advance=${moved}`, { method: "POST" }), env, ctx);
  },
};
