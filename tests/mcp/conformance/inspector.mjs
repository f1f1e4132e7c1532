// The command line of the inspector, whose module is at process.argv[2]: each line of the input has the arguments of a
// run as JSON, and is answered with a line of what that printed. By itself it is a process for each call, half a second.

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";

const { runCli } = await import(process.argv[2]);
let printed = "";
process.stdout.write = (text, ...rest) => {
  printed += text;
  rest.at(-1)?.();
  return true;
};
for await (const line of createInterface({ input: process.stdin })) {
  printed = "";
  try {
    await runCli(["node", "inspector", ...JSON.parse(line)]);
  } catch (error) {
    printed ||= JSON.stringify({ error: { message: error.message } });
  }
  writeSync(1, `${JSON.stringify(JSON.parse(printed))}\n`);
}
