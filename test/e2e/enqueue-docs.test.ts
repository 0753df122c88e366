import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { isServed } from "@konverge/kube";
import type { RunningApi } from "@konverge/api";
import { objectHistorySchema } from "@konverge/contracts";
import { defineConfig } from "@konverge/worker";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { alertWebhook } from "../../apps/examples/src/alert-webhook.ts";
import { nodePool } from "../../apps/examples/src/node-pool.ts";
import { Machine, NodePool } from "../../apps/examples/src/resources.ts";
import { isOnPath } from "../../infra/host/run.js";
import { startEmbeddedServer, type EmbeddedServer } from "../integration/kube/embedded-server.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { openDocsStage, TOKEN, type DocsStage } from "./docs-stage.ts";

const queues = useQueues();
const PAGE = readFileSync("docs/enqueue.md", "utf8");
let server: EmbeddedServer;
let api: RunningApi;
let type: DocsStage["type"];

/** Returns the code blocks below a heading of docs/enqueue.md, up to the next heading. */
function blocksBelow(heading: string, language = "sh"): string[] {
  const start = PAGE.indexOf(`\n${heading}\n`) + 1;
  const end = PAGE.indexOf("\n#", start + heading.length);
  const section = PAGE.slice(start, end === -1 ? undefined : end);
  return [...section.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"))].map(
    ([, block = ""]) => block,
  );
}

beforeEach(async () => {
  server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const { client } = server;
  const crds = await client.resolveType("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  for (const kind of [NodePool, Machine]) await client.create(crds, kind.crd());
  await until("the kinds are served", async () => {
    return (await isServed(client, NodePool)) && (await isServed(client, Machine));
  });
  const metadata = { namespace: "default", name: "blue" };
  await client.create(NodePool, { metadata, spec: { replicas: 1 } });
  ({ api, type } = await openDocsStage(queues, server, defineConfig({ controllers: [nodePool] })));
});

async function attemptsOf(name: string) {
  const response = await fetch(`${api.url}/v1/objects/default/node-pool/default/${name}`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  return response.ok ? objectHistorySchema.parse(await response.json()).attempts : [];
}
const triggersOf = async (name: string) =>
  (await attemptsOf(name)).flatMap(({ triggers }) => triggers);

test("docs/enqueue.md: curl enqueues one object and many; a pipeline waits; cron enqueues again", async () => {
  const [login = "", one = "", many = ""] = blocksBelow("## HTTP");
  await type(login);
  const said = await type(one);
  expect(said).toContain('"key":"node-pool/default/nodepools.demo.konverge.dev/default/blue"');
  expect(said).toContain('"attempts":[');
  await until("it ran for the pipeline's token", async () =>
    (await triggersOf("blue")).some(
      ({ kind, by, reason }) =>
        kind === "http" && by === "pipeline" && reason === "price list changed",
    ),
  );
  const batch = JSON.parse(await type(many)) as { accepted: number; items: unknown[] };
  expect(batch).toMatchObject({
    accepted: 1,
    items: [{ coalesced: expect.any(Boolean) }, { error: { code: "forbidden" } }],
  });

  const [step = ""] = blocksBelow("### Pipeline step");
  expect(await type(step, { CI_PIPELINE_ID: "4711" })).toBe("reconciled\n");
  expect(await type(step, { CI_PIPELINE_ID: "4711" })).toBe("reconciled\n");
  const runs = (await triggersOf("blue")).filter(({ reason }) => reason === "pipeline 4711");
  expect(runs).toHaveLength(1);

  const [crontab = ""] = blocksBelow("### Cron", "crontab");
  expect(crontab).not.toContain("%");
  const command = crontab.trim().split(" ").slice(5).join(" ");
  const body = '{"controller":"node-pool","namespace":"default","name":"blue","reason":"cron"}';
  await type(`printf '%s' '${body}' > nightly.json; ${command}`);
  await until("it ran for cron", async () =>
    (await triggersOf("blue")).some(({ reason }) => reason === "cron"),
  );
});

test("docs/enqueue.md: a pipeline step fails if the object cannot be reconciled", async () => {
  const [login = ""] = blocksBelow("## HTTP");
  await type(login);
  const [step = ""] = blocksBelow("### Pipeline step");
  const wrong = step.replace('"name":"blue"', '"name":"never-made"');
  await expect(type(wrong, { CI_PIPELINE_ID: "4712" })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('not reconciled: {"id":"node-pool/'),
  });
});

test("docs/enqueue.md: the command line enqueues, waits and exits with a code for each outcome", async () => {
  const [ask = ""] = blocksBelow("## CLI");
  const token = (await type("konverge token create shell --role operator")).trim();
  const env = { KONVERGE_TOKEN: token, CI_PIPELINE_ID: "4713", KONVERGE_REDIS_URL: "" };
  expect(await type(ask, env)).toMatch(/\nfinished +done .* node-pool +default\/blue\n$/);
  expect(await type(ask, env)).toMatch(/\nfinished +done /);
  const runs = (await triggersOf("blue")).filter(({ reason }) => reason === "pipeline 4713");
  expect(runs).toMatchObject([{ kind: "http", by: "shell" }]);
  const never = ask.replace(" blue ", " never-made ");
  await expect(type(never, { ...env, CI_PIPELINE_ID: "4714" })).rejects.toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/never-made@1: the object does not exist/) as string,
  });
  await expect(type(ask, { ...env, KONVERGE_TOKEN: "x".repeat(40) })).rejects.toMatchObject({
    code: 7,
  });
});

test("docs/enqueue.md: an annotation triggers a reconcile and is recorded as its trigger", async (context) => {
  if (!isOnPath("kubectl")) context.skip("no kubectl on PATH");
  await until("it ran before", async () => (await attemptsOf("blue")).length > 0);
  const [annotate = ""] = blocksBelow("## Annotation");
  await type(annotate);
  const asked = await until("it ran for the annotation", async () =>
    (await triggersOf("blue")).find(({ by }) => by === "annotation"),
  );
  expect(asked).toMatchObject({ kind: "watch" });
});

test("docs/enqueue.md: the webhook reconciles the objects of alerts once, and requests a retry while Konverge is unavailable", async () => {
  const webhook = alertWebhook({
    server: api.url,
    token: TOKEN,
    secret: "s3cret",
    controller: "node-pool",
  });
  await new Promise<void>((done) => webhook.listen(0, "127.0.0.1", done));
  onTestFinished(() => void webhook.close());
  const { port } = webhook.address() as AddressInfo;
  const send = async (body: unknown, secret = "s3cret") => {
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}` },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  };
  const alert = (labels: Record<string, string>, status = "firing") => ({
    status,
    fingerprint: "f00",
    startsAt: "2027-01-15T08:00:00Z",
    labels: { alertname: "PoolShort", namespace: "default", ...labels },
  });
  const notice = { version: "4", groupKey: "{}:{}", alerts: [alert({ object: "blue" })] };
  const first = await send(notice);
  expect(first).toMatchObject({ status: 200, text: expect.stringContaining('"accepted":1') });
  expect(await send(notice)).toEqual(first);
  await until("it ran for the alert", async () =>
    (await triggersOf("blue")).some(({ reason }) => reason === "alert PoolShort"),
  );
  const resolved = [alert({ object: "blue" }, "resolved"), alert({})];
  expect((await send({ ...notice, alerts: resolved })).text).toBe("nothing to reconcile\n");
  expect((await send(notice, "wrong")).status).toBe(401);
  expect((await send("{")).status).toBe(400);
  expect((await send("x".repeat(2_000_000))).status).toBe(400);
  await api.stop();
  expect((await send({ ...notice, groupKey: "other" })).status).toBe(503);
});
