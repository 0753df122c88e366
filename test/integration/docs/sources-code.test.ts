import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import type { Controller } from "@konverge/engine";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { announce, NODE_POOL } from "../queue/announce.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { useSources } from "../sources/sources-harness.ts";
import { blockOf, importText } from "./load-block.ts";

const queues = useQueues();
const sources = useSources(queues);
const run = promisify(execFile);
const SECRET = "0123456789abcdef0123456789abcdef";

async function controllerOf(block: string): Promise<Controller> {
  const exported = await importText(blockOf(block).text);
  const found = Object.values(exported).find(
    (value) => typeof value === "object" && value !== null && "eventSources" in value,
  );
  return found as Controller;
}

const payload = (name: string) =>
  readFile(new URL(`payloads/${name}.json`, import.meta.url), "utf8");

/** Serves the API with a folder of secrets, and runs the sources of a page's controller as its leader does. */
async function serve(controller: Controller) {
  const { name, for: type, eventSources } = controller;
  await announce(queues, [
    {
      ...NODE_POOL,
      name,
      kind: type.kind,
      resource: type.resource,
      group: type.group,
      sources: eventSources.map((source) => ({
        kind: source.kind,
        name: source.name,
        ...(source.kind === "inbound" ? { inbound: source.inbound } : {}),
      })),
    },
  ]);
  const folder = await mkdtemp(join(tmpdir(), "konverge-sources-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "secrets"));
  for (const source of eventSources) {
    await writeFile(join(folder, "secrets", source.name), `${SECRET}\n`);
  }
  const settings = {
    ...readSettings({ env: {} }),
    redisUrl: queues.apiUrl,
    prefix: queues.prefix,
    apiPort: 0,
    inboundSecretsDir: join(folder, "secrets"),
  };
  const api = await startApi({ settings: { ...settings, logLevel: "silent" }, version: "test" });
  onTestFinished(() => api.stop());
  sources.leadAs(controller);
  const post = (source: string, body: string, headers: Record<string, string>) =>
    fetch(`${api.url}/v1/inbound/${source}`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...headers },
    });
  return { api, folder, post };
}

const requested = () => sources.requestsOf();

test("docs/sources.md: a poll requests the buckets that changed", async () => {
  let etag = "1";
  const cloud = createServer((_, response) => {
    response.end(JSON.stringify([{ name: "logs", etag }]));
  });
  await new Promise<void>((resolve) => void cloud.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void cloud.close());
  process.env["CLOUD_URL"] = `http://127.0.0.1:${(cloud.address() as AddressInfo).port}`;
  onTestFinished(() => void delete process.env["CLOUD_URL"]);
  const text = blockOf("docs/sources.md ts 1").text.replace('every: "30s"', "every: 100");
  const { bucket } = (await importText(text)) as { readonly bucket: Controller };
  sources.leadAs(bucket);
  await until("it is requested", async () => (await requested())["default/logs"] === 1);
  etag = "2";
  await until("the change is requested", async () => (await requested())["default/logs"] === 2);
  expect(Object.keys(await requested())).toEqual(["default/logs"]);
});

test("docs/sources.md: a stream resumes after its last change", async () => {
  const asked: string[] = [];
  const feed = createServer((request, response) => {
    asked.push(request.url ?? "");
    const after = Number(new URL(request.url ?? "", "http://x").searchParams.get("after"));
    const changes = [1, 2].filter((id) => id > after);
    response.end(
      changes.map((id) => `${JSON.stringify({ id: String(id), shop: `s${id}` })}\n`).join(""),
    );
  });
  await new Promise<void>((resolve) => void feed.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void feed.close());
  process.env["FEED_URL"] = `http://127.0.0.1:${(feed.address() as AddressInfo).port}/changes`;
  onTestFinished(() => void delete process.env["FEED_URL"]);
  sources.leadAs(await controllerOf("docs/sources.md ts 2"));
  await until("it is opened again", () => asked.length >= 2);
  expect(asked.slice(0, 2)).toEqual(["/changes?after=", "/changes?after=2"]);
  expect(await requested()).toEqual({ "default/s1": 1, "default/s2": 1 });
});

test("docs/sources.md: a push of GitHub requests the object of the repository, and a ping none", async () => {
  const { post } = await serve(await controllerOf("docs/sources.md ts 3"));
  for (const event of ["ping", "push"]) {
    const body = await payload(`github-${event}`);
    const signature = createHmac("sha256", SECRET).update(body).digest("hex");
    const response = await post("github", body, {
      "user-agent": "GitHub-Hookshot/044aadd",
      "x-github-delivery": `72d3162e-cc78-11e3-81ab-4c9367dc095${event.length}${event}`,
      "x-github-event": event,
      "x-github-hook-id": "292430182",
      "x-hub-signature-256": `sha256=${signature}`,
    });
    expect(response.status).toBe(202);
  }
  await until("it is requested", async () => (await requested())["default/hello-world"] === 1);
  await until("all are mapped", async () => (await sources.store.take("github", 1)).waiting === 0);
  expect(Object.keys(await requested())).toEqual(["default/hello-world"]);
});

test("docs/sources.md: a notification of Alertmanager requests the Deployments of its alerts", async () => {
  const { post } = await serve(await controllerOf("docs/sources.md ts 4"));
  const body = await payload("alertmanager");
  const headers = { authorization: `Bearer ${SECRET}`, "user-agent": "Alertmanager/0.28.1" };
  expect((await post("alertmanager", body, headers)).status).toBe(202);
  await until("it is requested", async () => (await requested())["shop/web"] === 1);
});

test("docs/sources.md: a sync of Argo CD requests the object of its application", async () => {
  const { post } = await serve(await controllerOf("docs/sources.md ts 5"));
  const headers = { authorization: `Bearer ${SECRET}` };
  expect((await post("argocd", await payload("argocd"), headers)).status).toBe(202);
  await until("it is requested", async () => (await requested())["default/guestbook"] === 1);
});

test("docs/sources.md: the command signs a delivery", async () => {
  const { api, folder } = await serve(await controllerOf("docs/sources.md ts 6"));
  const script = blockOf("docs/sources.md sh 2").text;
  const env = { ...process.env, KONVERGE_SERVER: api.url };
  const once = await run("sh", ["-eu", "-c", script], { cwd: folder, env });
  expect(JSON.parse(once.stdout)).toEqual({ id: "price-4711", status: "accepted" });
  const again = await run("sh", ["-eu", "-c", script], { cwd: folder, env });
  expect(JSON.parse(again.stdout)).toEqual({ id: "price-4711", status: "duplicate" });
  await until("it is requested", async () => (await requested())["default/blue"] === 1);
});
