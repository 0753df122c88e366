import { openQueueAccess } from "@konverge/api";
import { readSettings, runHistorySchema } from "@konverge/contracts";
import { defined, describeEncoded, type PayloadCodec } from "@konverge/core";
import { openGuardControl } from "@konverge/guard";
import { createMetrics } from "@konverge/telemetry";
import {
  decodeValue,
  defineWorkflow,
  encodeValue,
  TerminalError,
  type Workflows,
} from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { createHmac } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@konverge/client";
import { z } from "zod";
import { openAnnounced } from "../queue/announce.ts";
import { openClient } from "../../../apps/cli/src/ask/open-client.ts";
import { checkLiveRuns } from "../../../apps/cli/src/config/check-live-runs.ts";
import { loadCodec } from "../../../apps/cli/src/process/load-codec.ts";
import { replay } from "../../../apps/cli/src/testing/index.ts";
import { watchCommands } from "../../contract/watch-commands.ts";
import { scrambleCodec } from "../../support/scramble-codec.ts";
import { until } from "../../support/until.ts";
import { problemIn, useApi, type Call } from "./api-harness.ts";

const harness = useApi({ announces: false });
const CANARY = "canary-9Tz";
const codec = {
  ...scrambleCodec(),
  fingerprint: (bytes: Uint8Array, scope: string) =>
    `k1.${createHmac("sha256", "a secret key").update(scope).update(bytes).digest("base64url")}`,
};

const pay = defineWorkflow("pay", { version: 1 }, async (w, input: { card: string }) => {
  const charged = await w.step("charge", () => input.card);
  w.set("charged", charged);
  w.log.info({ charged: charged.slice(0, 20) }, `${CANARY} is charged`);
  const answer = await w.handle("amount", z.object({ euros: z.number() }), ({ euros }) => {
    if (euros > 100) throw new TerminalError(`${CANARY} refuses ${euros}`);
    return { text: `${CANARY} ${euros}` };
  });
  const approval = await w.signal("approve");
  return { charged, answer, approval };
});
const fail = defineWorkflow("fail", { version: 1 }, async (_w, card: string) => {
  throw new TerminalError(`${card} is refused`);
});
const open = defineWorkflow("open", { version: 1 }, async (_w, input) => input);

async function work(): Promise<Workflows> {
  const announced = { name: pay.name, version: pay.version, codec: "scramble" };
  const failing = { ...announced, name: fail.name };
  const runs = await openAnnounced(harness.queues, [announced, failing, open], { codec });
  runs.work({ workflows: [pay, fail, open] });
  return runs;
}

/** An API in another process than the harness's, which has no codec. */
function serveWith(
  given: PayloadCodec | undefined,
  more: { readonly onError?: (error: unknown) => void } = {},
): Call {
  const { prefix, apiTarget: target } = harness.queues;
  const access = openQueueAccess({
    redis: target,
    prefix,
    onError: () => undefined,
    codec: given,
  });
  const guards = openGuardControl({ redis: target, prefix });
  onTestFinished(async () => {
    await Promise.all([access.close(), guards.close()]);
  });
  return harness.serve({ access, guards, metrics: createMetrics({ version: "test" }), ...more });
}

const post = (call: Call, path: string, body: unknown, key?: string) =>
  call(path, { body, ...(key === undefined ? {} : { headers: { "idempotency-key": key } }) });
const start = (call: Call, id: string, input: unknown, workflow = pay.name) =>
  post(call, "/v1/runs", { workflow, cluster: "default", id, input });
const inStatus = (runs: Workflows, id: string, status: string) =>
  until(`${id} is ${status}`, async () => {
    const run = await runs.get({ workflow: pay.name, id });
    return run?.status === status ? run : undefined;
  });

test("an API without the codec rejects plain values, and passes encoded ones on", async () => {
  const call = serveWith(undefined);
  const runs = await work();
  using watched = await watchCommands(process.env["REDIS_URL"] ?? "");
  const refused = await problemIn(await start(call, "a", { card: CANARY }));
  expect(refused).toMatchObject({ status: 422, code: "codec_missing" });
  expect(refused.detail).toContain("set KONVERGE_CODEC for it, or send an encoded value");
  const input = await encodeValue(codec, { card: CANARY }, { workflow: pay.name, kind: "input" });
  expect((await start(call, "a", input)).status).toBe(202);
  await inStatus(runs, "a", "waiting");
  const path = "/v1/runs/pay%2Fdefault%2Fa";
  const plain = { name: "approve", payload: CANARY, by: "ann" };
  expect(await problemIn(await post(call, `${path}/signal`, plain))).toMatchObject({
    code: "codec_missing",
  });
  expect(await problemIn(await post(call, `${path}/update`, plain))).toMatchObject({
    code: "codec_missing",
  });
  const context = { workflow: pay.name, run: "a", kind: "payload" } as const;
  const update = async (euros: number) =>
    await call(`${path}/update`, {
      body: { name: "amount", payload: await encodeValue(codec, { euros }, context), by: "ann" },
      headers: { prefer: "wait=30", "idempotency-key": crypto.randomUUID() },
    });
  const text = await (await update(500)).text();
  expect(text).toMatch(/was refused: encoded by codec scramble; \d+ bytes/);
  const { answer } = (await (await update(5)).json()) as { answer: unknown };
  expect(await decodeValue(codec, answer, { ...context, kind: "record" })).toEqual({
    text: `${CANARY} 5`,
  });
  const payload = await encodeValue(codec, CANARY, context);
  await post(call, `${path}/signal`, { name: "approve", payload, by: "ann" });
  const done = await inStatus(runs, "a", "done");
  expect(done.result).toEqual({
    charged: CANARY,
    answer: { text: `${CANARY} 5` },
    approval: CANARY,
  });
  const shown = await (await call(path)).text();
  expect(shown).toContain("konverge.dev/codec:1:scramble:json:");
  expect(shown).not.toContain(CANARY);
  expect(describeEncoded(input)).toMatch(/^encoded by codec scramble; \d+ bytes$/);
  const sent = watched.commands.map(({ args }) => args.join(" ")).join("\n");
  expect(sent).toContain("approve");
  expect(sent).not.toContain(CANARY);
});

/** A client with the codec, and all that it sends and receives. */
function clientOf(call: Call, sent: string[], used: PayloadCodec = codec) {
  return createClient({
    server: "http://localhost:7070",
    codec: used,
    fetch: async (request) => {
      const text = await request.text();
      const { pathname, search } = new URL(request.url);
      const response = await call(`${pathname}${search}`, {
        method: request.method,
        headers: Object.fromEntries(request.headers),
        ...(text === "" ? {} : { body: JSON.parse(text) as unknown }),
      });
      sent.push(text, await response.clone().text());
      return response;
    },
  });
}

test("a client with the codec shows no plain value to an API without it", async () => {
  const call = serveWith(undefined);
  const runs = await work();
  using watched = await watchCommands(process.env["REDIS_URL"] ?? "");
  const sent: string[] = [];
  const client = clientOf(call, sent);
  // Compressed by the worker.
  const card = CANARY.repeat(900);
  const begin = () =>
    client.runs.start({ workflow: pay.name, input: { card } }, { idempotencyKey: "once" });
  const { id } = await begin();
  expect(await begin()).toEqual({ id, created: true });
  const [, , name = ""] = id.split("/");
  await inStatus(runs, name, "waiting");
  const update = { name: "amount", by: "ann" };
  await expect(client.runs.update(id, { ...update, payload: { euros: 500 } })).rejects.toThrow(
    "was refused: encoded by codec scramble",
  );
  expect(await client.runs.update(id, { ...update, payload: { euros: 5 } })).toMatchObject({
    answer: { text: `${CANARY} 5` },
  });
  const approve = { name: "approve", payload: CANARY };
  await expect(
    client.runs.act({ action: "signal", signal: approve, by: "ann", reason: "test" }),
  ).rejects.toMatchObject({ code: "invalid_request", errors: [{ pointer: "/filter/workflow" }] });
  await client.runs.act({
    action: "signal",
    filter: { workflow: pay.name },
    signal: approve,
    by: "ann",
    reason: "test",
  });
  const done = await client.runs.wait(id);
  const result = { charged: card, answer: { text: `${CANARY} 5` }, approval: CANARY };
  expect(done).toMatchObject({ input: { card }, result, published: { charged: card } });
  expect(done.steps.map(({ value }) => value)).toEqual([card, result.answer, CANARY]);
  const { items } = await client.runs.logs(id);
  expect(items[0]).toMatchObject({
    message: `${CANARY} is charged`,
    fields: { charged: expect.stringContaining(CANARY) as string },
  });
  expect(await client.runs.history(id)).toMatchObject({ input: { card }, result });
  const listed: string[] = [];
  for await (const run of client.runs.list({ workflow: pay.name })) listed.push(run.id);
  expect(listed).toEqual([id]);
  const commands = watched.commands.map(({ args }) => args.join(" "));
  const all = [...commands, ...sent].join("\n");
  expect(all).toContain("konverge.dev/codec:1:scramble:deflate:");
  for (const text of [CANARY, Buffer.from(CANARY).toString("base64").slice(0, 10)]) {
    expect(all).not.toContain(text);
  }
});

test("a client with the codec gets 409 for a known id or Idempotency-Key and another input", async () => {
  const call = serveWith(undefined);
  await work();
  const client = clientOf(call, []);
  const begin = (card: string, how: { readonly id?: string; readonly key?: string }) =>
    client.runs.start(
      { workflow: pay.name, input: { card }, ...defined({ id: how.id }) },
      how.key === undefined ? {} : { idempotencyKey: how.key },
    );
  const { id } = await begin("1111", { id: "known" });
  expect(await begin("1111", { id: "known" })).toMatchObject({ id, created: false });
  await expect(begin("2222", { id: "known" })).rejects.toMatchObject({
    status: 409,
    code: "input_mismatch",
  });
  const first = await begin("1111", { key: "once" });
  expect(await begin("1111", { key: "once" })).toEqual(first);
  await expect(begin("2222", { key: "once" })).rejects.toMatchObject({
    code: "idempotency_mismatch",
  });
});

test("an Idempotency-Key is repeated across a rotation of keys, and by a client without fingerprints", async () => {
  const call = serveWith(undefined);
  await work();
  const begin = async (used: PayloadCodec, card: string, key: string) =>
    await clientOf(call, [], used).runs.start(
      { workflow: pay.name, input: { card } },
      { idempotencyKey: key },
    );
  const rotated = { ...codec, fingerprint: () => "k2.digest" };
  const codecs = [codec, rotated, scrambleCodec()];
  for (const [n, before] of codecs.entries()) {
    const key = `once-${n}`;
    const first = await begin(before, "1111", key);
    for (const after of codecs) expect(await begin(after, "1111", key)).toEqual(first);
    await expect(begin(codec, "22222", key)).rejects.toMatchObject({
      code: "idempotency_mismatch",
    });
  }
});

test("a client shows the message of an error, and leaves values of another codec encoded", async () => {
  const call = serveWith(undefined);
  const runs = await work();
  const { id } = await runs.start(fail, CANARY);
  await until("the run has failed", async () => {
    const run = await runs.get({ workflow: fail.name, id });
    return run?.status === "failed" && run;
  });
  const run = await clientOf(call, []).runs.get(`fail/default/${id}`);
  expect(run.error?.message).toBe(`${CANARY} is refused`);
  expect(run.error?.frames?.join("\n")).not.toContain("konverge.dev/codec");
  const other = createClient({
    server: "http://localhost:7070",
    codec: { ...codec, name: "other" },
    fetch: async (request) => await call(new URL(request.url).pathname),
  });
  const { input } = await other.runs.get(`fail/default/${id}`);
  expect(input).toMatch(/^konverge.dev\/codec:1:scramble:/);
});

test("an API with the codec encodes, decodes, and keeps no response as it is", async () => {
  const call = serveWith(codec);
  const runs = await work();
  using watched = await watchCommands(process.env["REDIS_URL"] ?? "");
  const begin = () =>
    post(
      call,
      "/v1/runs",
      { workflow: "pay", cluster: "default", input: { card: CANARY } },
      "key-of-a-start",
    );
  const { id } = (await (await begin()).json()) as { id: string };
  expect(await (await begin()).json()).toMatchObject({ id });
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const update = () =>
    call(`${path}/update`, {
      body: { name: "amount", payload: { euros: 5 }, by: "ann" },
      headers: { prefer: "wait=30", "idempotency-key": "key-of-an-update" },
    });
  const answer = await (await update()).json();
  expect(answer).toMatchObject({ status: "accepted", answer: { text: `${CANARY} 5` } });
  const again = await update();
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(await again.json()).toEqual(answer);
  await post(
    call,
    `${path}/signal`,
    { name: "approve", payload: CANARY, by: "ann" },
    "key-of-a-signal",
  );
  const [, , name = ""] = id.split("/");
  await inStatus(runs, name, "done");
  expect(await (await call(path)).json()).toMatchObject({
    input: { card: CANARY },
    result: { charged: CANARY },
  });
  const sent = watched.commands.map(({ args }) => args.join(" ")).join("\n");
  expect(sent).toContain("approve");
  for (const text of [CANARY, Buffer.from(CANARY).toString("base64").slice(0, 10)]) {
    expect(sent).not.toContain(text);
  }
  const other = await serveWith(undefined)(`${path}/update`, {
    body: { name: "amount", payload: { euros: 5 }, by: "ann" },
    headers: { prefer: "wait=30", "idempotency-key": "key-of-an-update" },
  });
  expect(await problemIn(other)).toMatchObject({ code: "codec_missing" });
});

test("an action succeeds once if the codec fails to encode its response", async () => {
  const failing: PayloadCodec = {
    ...codec,
    encode(bytes, context) {
      if (context.kind === "response") throw new Error("the key service is away");
      return codec.encode(bytes, context);
    },
  };
  const errors: unknown[] = [];
  const call = serveWith(failing, { onError: (error) => errors.push(error) });
  const runs = await work();
  await start(call, "a", { card: "4711" });
  await inStatus(runs, "a", "waiting");
  const pause = () =>
    post(
      call,
      "/v1/runs/pay%2Fdefault%2Fa/pause",
      { by: "ann", reason: "freeze" },
      "key-of-a-pause",
    );
  expect(await (await pause()).json()).toMatchObject({ effect: "paused" });
  expect(await problemIn(await pause())).toMatchObject({ code: "idempotency_in_flight" });
  expect(errors).toEqual([new Error("the key service is away")]);
});

test("a workflow without a codec gets no encoded value", async () => {
  const call = serveWith(codec);
  await work();
  const encoded = await encodeValue(codec, 1, { workflow: open.name, kind: "input" });
  const problem = await problemIn(await start(call, "o", encoded, open.name));
  expect(problem).toMatchObject({ status: 422, code: "invalid_request" });
  expect(problem.detail).toContain('workflow "open" has no codec');
});

test("an exported run replays with the codec, and deploy check reads live runs with that of the configuration", async () => {
  const call = serveWith(undefined);
  const runs = await work();
  await runs.start(pay, { card: CANARY }, { id: "h" });
  await inStatus(runs, "h", "waiting");
  const exported = await (await call("/v1/runs/pay%2Fdefault%2Fh/history")).json();
  const history = runHistorySchema.parse(exported) as never;
  expect(JSON.stringify(history)).not.toContain(CANARY);
  await replay(history, pay, { codec });
  await expect(replay(history, pay)).rejects.toThrow('encoded by codec "scramble"');
  const { apiUrl: url, prefix } = harness.queues;
  const env = { KONVERGE_REDIS_URL: url, KONVERGE_PREFIX: prefix };
  const opened = await openClient(readSettings({ env }));
  onTestFinished(() => opened.close());
  const workflows = [pay, open];
  expect(await checkLiveRuns(opened.client, "default", { workflows, codec })).toMatchObject({
    fit: 1,
  });
  const { misfits } = await checkLiveRuns(opened.client, "default", { workflows });
  expect(misfits).toMatchObject([
    { blocks: true, reason: expect.stringContaining('encoded by codec "scramble"') },
  ]);
});

test("KONVERGE_CODEC names a module with a codec, or a configuration with one", async () => {
  const directory = await mkdtemp(join(tmpdir(), "konverge-codec-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const write = async (name: string, text: string) => {
    const path = join(directory, name);
    await writeFile(path, text);
    return path;
  };
  const body = "{ encode: (bytes) => bytes, decode: (bytes) => bytes, name: 'mine' }";
  const paths = [
    await write("codec.mjs", `export default ${body};`),
    await write("config.mjs", `export default { controllers: [], codec: ${body} };`),
  ];
  for (const path of paths) expect(await loadCodec(path)).toMatchObject({ name: "mine" });
  const wrong = await write("wrong.mjs", "export default { encode() {} };");
  await expect(loadCodec(wrong)).rejects.toThrow("decode must be a function");
  await expect(loadCodec(join(directory, "missing.mjs"))).rejects.toThrow("cannot be loaded");
  expect(await loadCodec(undefined)).toBeUndefined();
});
