// A service of workerd's own, by a clock that stands still until a test moves it: how long a call takes says how busy the
// machine is, and nothing of a queue or a namespace. What is due is delivered by alarms, and those keep the machine's
// clock: with each move the still time is set to the machine's, and the service's own test clock makes up for the
// difference. `/clock?run` lets the clock run with the machine's again.
import service from "SERVICE";

export * from "SERVICE";

const real = Date.now;
let still = 0;
let skew = 0;
Date.now = () => still || real();

export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname !== "/clock") return service.fetch(request, env, ctx);
    const now = Date.now() + skew + Number(url.searchParams.get("advance"));
    const run = url.searchParams.has("run");
    still = run ? 0 : real();
    const moved = run ? -skew : now - still - skew;
    skew += moved;
    const done = await service.fetch(new Request(`http://service/clock?advance=${moved}`, { method: "POST" }), env, ctx);
    return done.ok ? Response.json({ now: Date.now() + skew }) : done;
  },
};
