import { KonvergeError } from "@konverge/core";
import { testWorkflow, type TestRun } from "@konverge/workflow/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { standInForDeployments } from "../../../apps/demo/src/rollout/stand-in-deployments.ts";
import { fleetRollout, ROLLOUTS } from "../../../apps/examples/src/fleet-rollout.ts";
import { Deployment, Namespace } from "konverge/kinds";
import { startEmbeddedServer, type EmbeddedServer } from "../kube/embedded-server.ts";
import { until } from "../../support/until.ts";

const APP = { namespace: "shop", name: "web" };
let servers: Record<string, EmbeddedServer> = {};
let cleanup = new AsyncDisposableStack();

beforeEach(async () => {
  servers = {};
  for (const name of ["east", "west"]) {
    const server = cleanup.use(await startEmbeddedServer());
    servers[name] = server;
    const labels = { app: "web" };
    await server.client.create(Namespace, { metadata: { name: APP.namespace } });
    await server.client.create(Deployment, {
      metadata: APP,
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "web", image: "web:1" }] },
        },
      },
    });
  }
});
afterEach(async () => {
  await cleanup.disposeAsync();
  cleanup = new AsyncDisposableStack();
});

function clientOf(name: string): EmbeddedServer["client"] {
  const server = servers[name];
  if (server === undefined) throw new KonvergeError("invalid_request", `no cluster "${name}"`);
  return server.client;
}

function runDeployments(...names: readonly string[]): void {
  for (const name of names) {
    const options = {
      namespace: APP.namespace,
      podMs: 10,
      onError: (error: Error) => {
        throw error;
      },
    };
    cleanup.use(standInForDeployments(clientOf(name), options));
  }
}

function start(image = "web:2"): TestRun {
  const input = { ...APP, image, clusters: ["east", "west"], soakSeconds: 1_800 };
  return testWorkflow(fleetRollout, input, {
    clusters: { home: "east", client: async (name) => clientOf(name) },
    replayEveryStep: true,
  });
}

async function read(name: string) {
  const { metadata, spec } = await clientOf(name).get(Deployment, APP);
  return {
    image: spec?.template.spec?.containers[0]?.image,
    rollouts: metadata.annotations?.[ROLLOUTS],
  };
}

/** Waits until the run has reached a state, while objects change. */
const recorded = (t: TestRun, step: string) =>
  until(`${step} is recorded`, async () => {
    await t.settle();
    return (await t.steps()).has(step) || undefined;
  });

test("a rollout continues to the next cluster once one is ready, soaked, healthy and approved", async () => {
  runDeployments("east", "west");
  const t = start();
  await recorded(t, "east is ready");
  expect(await read("west"), "one after the other").toEqual({ image: "web:1" });
  await t.advance("29m");
  expect((await t.steps()).has("check east")).toBe(false);
  const waiting = await t.advance("2m");
  expect(waiting.waits).toMatchObject([{ kind: "signal", step: "approve west" }]);
  expect(await read("west")).toEqual({ image: "web:1" });
  await t.signal("approve west", { approved: true });
  await recorded(t, "west is ready");
  expect(await t.advance("31m")).toMatchObject({ status: "done" });
  const upgraded = { image: "web:2", rollouts: "1" };
  expect([await read("east"), await read("west")]).toEqual([upgraded, upgraded]);
  await t.replay();
});

test("P10: a worker that dies after the upgrade's write has upgraded once", async () => {
  runDeployments("east", "west");
  const t = start();
  t.crashIn("upgrade east");
  await recorded(t, "east is ready");
  expect(t.bodies.filter((body) => body === "upgrade east")).toHaveLength(2);
  expect(await read("east")).toEqual({ image: "web:2", rollouts: "1" });
});

test("a rejection restores the clusters", async () => {
  runDeployments("east", "west");
  const t = start();
  await recorded(t, "east is ready");
  await t.advance("31m");
  const run = await t.signal("approve west", { approved: false });
  expect(run).toMatchObject({ status: "failed", error: { message: "west was rejected" } });
  expect(await read("east")).toEqual({ image: "web:1", rollouts: "1" });
  expect(t.bodies).not.toContain("upgrade west");
});

test("a cluster that does not become ready fails the rollout; all are restored, the last one first", async () => {
  runDeployments("east");
  const t = start();
  await recorded(t, "east is ready");
  await t.advance("31m");
  await t.signal("approve west", { approved: true });
  const run = await t.advance("16m");
  expect(run).toMatchObject({ status: "failed" });
  expect(run.error?.message).toMatch(/west is ready.*Deployment/s);
  expect(t.bodies.slice(-2)).toEqual(["undo:upgrade west", "undo:upgrade east"]);
  expect([(await read("east")).image, (await read("west")).image]).toEqual(["web:1", "web:1"]);
});

test("an image that does not start is rolled back before the next approval", async () => {
  runDeployments("east", "west");
  const t = start("web:broken");
  await until("the Deployment reports a failure", async () => {
    await t.settle();
    const { status } = await clientOf("east").get(Deployment, APP);
    const reasons = status?.conditions?.map(({ reason }) => reason);
    return reasons?.includes("ProgressDeadlineExceeded") || undefined;
  });
  await t.settle();
  const run = await t.advance("1m");
  expect(run).toMatchObject({ status: "failed" });
  expect((await read("east")).image).toBe("web:1");
  expect(t.bodies).not.toContain("look at west");
});
