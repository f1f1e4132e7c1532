// Lists and calls everything of the server at process.argv[2] with the TypeScript SDK, and prints what it saw as JSON.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [, , address, mode] = process.argv;
const client = new Client(
  { name: "core", version: "1" },
  {
    capabilities: { elicitation: {}, sampling: {}, roots: {} },
    versionNegotiation: { mode: mode === "legacy" ? "legacy" : { pin: mode } },
  },
);
client.setRequestHandler("elicitation/create", () => ({
  action: "accept",
  content: { name: "Ada", color: "blue", ok: true, context: "tests", username: "ada", email: "ada@example.com" },
}));
client.setRequestHandler("sampling/createMessage", () => ({
  role: "assistant",
  content: { type: "text", text: "Paris" },
  model: "none",
}));
client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///work", name: "work" }] }));
await client.connect(new StreamableHTTPClientTransport(new URL(address)));

const seen = { version: client.getNegotiatedProtocolVersion(), tools: {}, resources: {}, prompts: {}, changes: [] };
const given = { test_custom_header: { region: "eu" } };
for (const { name } of (await client.listTools()).tools) {
  try {
    const result = await client.callTool({ name, arguments: given[name] ?? {} });
    seen.tools[name] = result.isError ? "isError" : result.content.map((each) => each.type).join(" ");
  } catch (error) {
    seen.tools[name] = error.code ?? String(error);
  }
}
const uris = (await client.listResources()).resources.map((each) => each.uri);
const templates = (await client.listResourceTemplates()).resourceTemplates;
for (const uri of [...uris, ...templates.map((each) => each.uriTemplate.replace("{id}", "7"))]) {
  const { contents } = await client.readResource({ uri });
  seen.resources[uri] = contents[0].mimeType;
}
for (const { name, arguments: wanted = [] } of (await client.listPrompts()).prompts) {
  try {
    const values = Object.fromEntries(wanted.map((each) => [each.name, "test://static-text"]));
    const { messages } = await client.getPrompt({ name, arguments: values });
    seen.prompts[name] = messages.map((each) => each.content.type).join(" ");
  } catch (error) {
    seen.prompts[name] = error.code ?? String(error);
  }
}
const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
seen.completed = (await client.complete({ ref, argument: { name: "arg1", value: "par" } })).completion.values;

if (mode !== "legacy") {
  const both = new Promise((resolve) => {
    const note = (change) => seen.changes.push(change) === 2 && resolve();
    client.setNotificationHandler("notifications/tools/list_changed", () => note("tools"));
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => note(params.uri));
  });
  const stream = await client.listen({ toolsListChanged: true, resourceSubscriptions: ["test://template/1/data"] });
  await client.callTool({ name: "test_trigger_tool_change" });
  await both;
  await stream.close();
}
await client.close();
console.log(JSON.stringify(seen));
