import { mkdir, rm, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join, resolve } from "node:path";
import type { RunningApi } from "@konverge/api";
import { createClient } from "@konverge/client";
import { mutationSchema, type NewMutation } from "@konverge/contracts";
import { ConfigMap, Deployment } from "@konverge/kube/kinds";
import type { Config } from "@konverge/worker";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { blocksOf, importText } from "../integration/docs/load-block.ts";
import { startEmbeddedServer, type EmbeddedServer } from "../integration/kube/embedded-server.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { openDocsStage, TOKEN, type DocsStage } from "./docs-stage.ts";

const queues = useQueues();
const textOf = (language: string, number: number) => {
  const found = blocksOf("docs/mutations.md").find(
    (block) => block.language === language && block.number === number,
  );
  return found?.text ?? expect.unreachable(`docs/mutations.md has no ${language} ${number}`);
};
let server: EmbeddedServer;
let api: RunningApi;
let type: DocsStage["type"];

/** The API, a worker with the page's configuration, and a folder with `konverge` in the path. */
beforeEach(async () => {
  server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const labels = { app: "web" };
  await server.client.create(Deployment, {
    metadata: { namespace: "default", name: "web" },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "web", image: "shop/web:1.8.1" }] },
      },
    },
  });
  const text = textOf("ts", 1)
    .replace('from "konverge"', 'from "@konverge/worker"')
    .replace('from "konverge/kinds"', 'from "@konverge/kube/kinds"');
  const { default: config } = (await importText(text)) as { readonly default: Config };
  const stage = await openDocsStage(queues, server, config);
  ({ api } = stage);
  await writeFile(join(stage.folder, "konverge.header"), `authorization: Bearer ${TOKEN}\n`);
  type = (script, env) => stage.type(script, { KONVERGE_TOKEN: TOKEN, ...env });
});

const client = () => createClient({ server: api.url, token: TOKEN });
const data = async () =>
  (await server.client.get(ConfigMap, { namespace: "default", name: "usage" })).data;
const replicas = async () =>
  (await server.client.get(Deployment, { namespace: "default", name: "web" })).spec?.replicas;

test("docs/mutations.md: tokens, curl, the client and the command line change the objects", async () => {
  const [billing, ci] = (await type(textOf("sh", 1))).trim().split("\n");
  expect(ci).toMatch(/^kvg_/);
  const open = await createClient({ server: api.url, token: ci }).mutations.kinds();
  expect(open.items.map(({ kind }) => kind)).toEqual(["Deployment"]);
  const curl = textOf("sh", 2);
  const ended = mutationSchema.parse(JSON.parse(await type(curl)));
  const printed = mutationSchema.parse(JSON.parse(textOf("json", 1)));
  const { createdAt: _c, endedAt: _e, resourceVersion: _r, by: _b, ...rest } = printed;
  expect(ended).toMatchObject(rest);
  expect(Object.keys(ended).toSorted()).toEqual(Object.keys(printed).toSorted());
  // The same ID is the same mutation, also with another token.
  expect(JSON.parse(await type(curl, { KONVERGE_TOKEN: billing ?? "" }))).toEqual(ended);
  expect(await data()).toEqual({ requests: "25" });

  const output = await type(textOf("sh", 3));
  expect(await replicas()).toBe(5);
  expect(await data()).toEqual({ requests: "50" });
  expect(output).toContain('"id": "default/invoice-1002"');
  expect(output).toMatch(/default\/invoice-1001 +applied +ConfigMap +default\/usage/);

  const cache = resolve("node_modules/.cache");
  await mkdir(cache, { recursive: true });
  const program = join(cache, `mutation-docs-${process.pid}.mjs`);
  const text = textOf("ts", 2).replace('"konverge/client"', '"@konverge/client"');
  await writeFile(program, stripTypeScriptTypes(text));
  onTestFinished(() => rm(program));
  expect(await type(`"${process.execPath}" --conditions=@konverge/source ${program}`)).toMatch(
    /^applied \d+\n$/,
  );
  expect(await replicas()).toBe(6);
});

test("docs/mutations.md: each change and precondition is accepted, and the outcomes are as described", async () => {
  const changes = textOf("json", 2)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as NewMutation["changes"][number]);
  expect(changes.map(({ kind }) => kind)).toEqual([
    "set",
    "merge",
    "increment",
    "append",
    "remove",
    "remove",
    "jsonPatch",
    "apply",
  ]);
  const usage = { kind: "ConfigMap", namespace: "default", name: "usage" };
  const web = { ...usage, kind: "Deployment", name: "web" };
  await client().mutations.submit({
    ...usage,
    create: { data: { old: "1" } },
    changes: [{ kind: "set", path: "/data/a", value: "1" }],
  });
  const submitted = await client().mutations.submitAll(
    changes.map((change) => ({
      ...(["set", "increment", "apply"].includes(change.kind) ? web : usage),
      changes: [change],
    })),
  );
  expect(submitted.accepted).toBe(changes.length);
  for (const item of submitted.items) {
    const { state, error } = await client().mutations.wait("id" in item ? item.id : "");
    expect([state, error]).toEqual([expect.stringMatching(/^(applied|unchanged)$/), undefined]);
  }
  const precondition = JSON.parse(textOf("json", 3)) as Pick<NewMutation, "if">;
  const { id } = await client().mutations.submit({
    ...web,
    ...precondition,
    changes: [{ kind: "set", path: "/spec/replicas", value: 1 }],
  });
  const { state, error } = await client().mutations.wait(id);
  expect(state).toBe("precondition_failed");
  expect(error?.message).toMatch(/^the generation is \d+, not 4$/);
});

test("konverge mutate prints, waits and exits with the outcome", async () => {
  const exit = async (words: string) => {
    const script = `konverge mutate ${words} >/dev/null 2>error; echo "$? $(cat error)"`;
    return (await type(`set +e; ${script}`)).trim();
  };
  expect(await exit("ConfigMap usage -n default --set /data/a=1 --wait")).toMatch(/^3 .*not_found/);
  expect(await exit("ConfigMap usage -n default --create --set-string /data/a=1 --wait")).toBe("0");
  expect(await exit("ConfigMap usage -n default --set /data/a=1 --wait")).toMatch(/^1 .*kube_api/);
  expect(await exit("ConfigMap usage -n default --set /data/a=x --if /data/a=2 --wait")).toMatch(
    /^4 .*\/data\/a has another value/,
  );
  expect(await exit("ConfigMap usage -n default --set /data/b=x --if '!/data/b' --wait")).toBe("0");
  expect(await exit("Secret s -n default --set-string /data/a=x")).toMatch(/^7 .*mutations\.kinds/);
  expect(await exit("ConfigMap usage -n default")).toMatch(/^2 .*no change given; use --set/);
  expect(await exit("ConfigMap usage -n default --increment /data/a=x")).toMatch(/^2 .*integer/);
  expect(await exit("ConfigMap usage -n default --set data=x")).toMatch(/^2 .*JSON Pointer/);
  const dry = await type(
    "konverge mutate ConfigMap u --increment /data/a=1 --append /x=2 --set /data/c=3 --dry-run -o json",
  );
  expect(JSON.parse(dry)).toMatchObject({
    changes: [
      { kind: "increment", path: "/data/a", by: 1 },
      { kind: "append", path: "/x", value: 2 },
      { kind: "set", path: "/data/c", value: 3 },
    ],
  });
  const patch = `echo '[{"op":"add","path":"/data/p","value":"1"}]' > patch.json`;
  await type(`${patch}; konverge mutate ConfigMap usage -n default --patch-file patch.json --wait`);
  expect(await data()).toMatchObject({ a: "1", b: "x", p: "1" });
  await until("the mutations of the object are listed", async () => {
    const names = await type("konverge mutation list --kind ConfigMap --state applied -o name");
    return names.trim().split("\n").length === 3;
  });
});
