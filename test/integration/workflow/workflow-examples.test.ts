import type { ApiObject, JsonObject, ResourceType } from "@konverge/core";
import { ignoreNotFound, type KubeClient } from "@konverge/kube";
import { Deployment, Job, Namespace, Node, Pod, PodDisruptionBudget } from "konverge/kinds";
import { testWorkflow, type TestRun } from "konverge/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { standInForDeployments } from "../../../apps/demo/src/rollout/stand-in-deployments.ts";
import { coldBackup } from "../../../apps/examples/src/cold-backup.ts";
import { nodeDrain } from "../../../apps/examples/src/node-drain.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

/** Only the real API server has Jobs, pods and nodes. */
const [real] = testServers().filter(({ name }) => name === "kube-apiserver");
let client: KubeClient;
let namespace = "";
let serial = 0;
let cleanup = new AsyncDisposableStack();

const create = <T extends ApiObject>(type: ResourceType<T>, object: object): Promise<T> =>
  client.create(type, object as never);
const setStatus = <T extends ApiObject>(type: ResourceType<T>, name: string, status: JsonObject) =>
  client.mutate<ApiObject & { status?: JsonObject }>(
    type,
    { namespace, name },
    (draft) => {
      draft.status = { ...draft.status, ...status };
    },
    { subresource: "status" },
  );
/** Settles the run repeatedly while the test plays the cluster's part. */
const settleUntil = <T>(t: TestRun, what: string, look: () => Promise<T | undefined | false>) =>
  until(what, async () => {
    await t.settle();
    return await look();
  });
const now = () => new Date().toISOString().replace(/\.\d+/, "");

describe.runIf(real !== undefined)("on a real API server", () => {
  beforeEach(async () => {
    const opened = await real?.open();
    if (opened === undefined) throw new Error("there is none");
    client = opened.client;
    cleanup.defer(() => opened.close());
    namespace = `examples-${process.pid}-${(serial += 1)}`;
    await create(Namespace, { metadata: { name: namespace } });
    cleanup.defer(async () => {
      await client.delete(Namespace, { name: namespace });
    });
  });
  afterEach(async () => {
    await cleanup.disposeAsync();
    cleanup = new AsyncDisposableStack();
  });

  describe("a cold backup", () => {
    const start = async () => {
      const labels = { app: "db" };
      await create(Deployment, {
        metadata: { namespace, name: "db" },
        spec: {
          replicas: 2,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: "db", image: "db:1" }] },
          },
        },
      });
      const onError = (error: Error) => {
        throw error;
      };
      cleanup.use(standInForDeployments(client, { namespace, podMs: 10, onError }));
      const input = { namespace, name: "db", claim: "data", image: "copier:1" };
      return testWorkflow(coldBackup, input, { kube: client, replayEveryStep: true });
    };
    const replicas = async () => (await client.get(Deployment, { namespace, name: "db" })).spec;
    const jobs = async () =>
      (await client.list(Job, { namespace })).items.map(({ metadata }) => metadata.name);
    /** Updates the Job as its controller does when the pod has ended. */
    const endJob = (name: string, how: "Complete" | "Failed") => {
      const startTime = now();
      const condition = (type: string) => ({
        type,
        status: "True",
        lastProbeTime: startTime,
        lastTransitionTime: startTime,
      });
      return setStatus(
        Job,
        name,
        how === "Complete"
          ? {
              startTime,
              completionTime: startTime,
              succeeded: 1,
              conditions: [condition("SuccessCriteriaMet"), condition("Complete")],
            }
          : {
              startTime,
              failed: 1,
              conditions: [condition("FailureTarget"), condition("Failed")],
            },
      );
    };
    const jobOf = (t: TestRun, verb: string) =>
      settleUntil(t, `the Job ${verb} is there`, async () =>
        (await jobs()).find((name) => name.startsWith(`db-${verb}-`)),
      );

    test("stops the app while its volume is copied and verified", async () => {
      const t = await start();
      t.crashIn("copy");
      const copy = await jobOf(t, "copy");
      expect(await replicas()).toMatchObject({ replicas: 0 });
      expect(await jobs(), "one Job, also when its step runs twice").toEqual([copy]);
      await endJob(copy, "Complete");
      const verify = await jobOf(t, "verify");
      expect(await replicas()).toMatchObject({ replicas: 0 });
      await endJob(verify, "Complete");
      const run = await settleUntil(t, "the run ends", async () => {
        const { endedAtMs, ...ended } = await t.run();
        return endedAtMs === undefined ? undefined : ended;
      });
      expect(run).toMatchObject({ status: "done", result: { replicas: 2 } });
      expect(await replicas()).toMatchObject({ replicas: 2 });
      await t.replay();
    });

    test("an incomplete copy fails the backup, and the app restarts", async () => {
      const t = await start();
      await endJob(await jobOf(t, "copy"), "Complete");
      await endJob(await jobOf(t, "verify"), "Failed");
      const run = await settleUntil(t, "the run ends", async () => {
        const view = await t.run();
        return view.endedAtMs === undefined ? undefined : view;
      });
      expect(run.status).toBe("failed");
      expect(await replicas()).toMatchObject({ replicas: 2 });
      expect(t.bodies.filter((body) => body.startsWith("undo:"))).toEqual([
        "undo:verify",
        "undo:copy",
        "undo:stop the app",
      ]);
    });

    test("a cancelled backup restarts the app and deletes its Job", async () => {
      const t = await start();
      const copy = await jobOf(t, "copy");
      expect(await t.cancel()).toMatchObject({ status: "cancelled" });
      expect(await replicas()).toMatchObject({ replicas: 2 });
      const job = await client.get(Job, { namespace, name: copy }).catch(ignoreNotFound);
      expect(job?.metadata.deletionTimestamp ?? "gone").toBeTruthy();
    });
  });

  describe("a drain of a node", () => {
    const node = () => `node-${namespace}`;
    const unschedulable = async () =>
      (await client.get(Node, { name: node() })).spec?.unschedulable ?? false;
    const pods = async () =>
      (await client.list(Pod, { namespace })).items.map(({ metadata }) => metadata.name);
    const makePod = async (name: string, owner?: { kind: string; uid: string }) => {
      await create(Pod, {
        metadata: {
          namespace,
          name,
          labels: { app: "web" },
          ...(owner === undefined
            ? {}
            : {
                ownerReferences: [
                  { apiVersion: "apps/v1", name: "agent", controller: true, ...owner },
                ],
              }),
        },
        spec: {
          nodeName: node(),
          containers: [{ name: "main", image: "main" }],
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 1,
        },
      });
      const conditions = [{ type: "Ready", status: "True" }];
      await setStatus(Pod, name, { phase: "Running", conditions });
    };
    /** Sets the disruptions that the disruption controller would allow. */
    const allow = (disruptionsAllowed: number) =>
      setStatus(PodDisruptionBudget, "web", {
        currentHealthy: 2,
        desiredHealthy: 1,
        expectedPods: 2,
        disruptionsAllowed,
        observedGeneration: 1,
      });
    /** Removes terminating pods, as their kubelet does. */
    const playKubelet = async () => {
      for (const { metadata } of (await client.list(Pod, { namespace })).items) {
        if (metadata.deletionTimestamp === undefined) continue;
        const { name, uid = "" } = metadata;
        await client
          .delete(Pod, { namespace, name }, { gracePeriodSeconds: 0, uid })
          .catch(ignoreNotFound);
      }
    };
    const start = async (startMs = Date.now()) => {
      await create(Node, { metadata: { name: node() } });
      cleanup.defer(() => client.delete(Node, { name: node() }));
      await makePod("web-1");
      await makePod("web-2");
      await makePod("agent", { kind: "DaemonSet", uid: crypto.randomUUID() });
      await create(PodDisruptionBudget, {
        metadata: { namespace, name: "web" },
        spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
      });
      await allow(1);
      return testWorkflow(
        nodeDrain,
        { node: node(), patienceMinutes: 10 },
        { kube: client, startMs },
      );
    };

    test("evicts pods as the disruption budget allows, except those of DaemonSets", async () => {
      const t = await start();
      const left = await settleUntil(t, "one pod has left", async () => {
        await playKubelet();
        await t.advance("1s");
        const there = await pods();
        return there.length === 2 && there;
      });
      expect(left).toContain("agent");
      expect(await unschedulable()).toBe(true);
      expect((await t.run()).endedAtMs, "the budget holds it up").toBeUndefined();
      await allow(1);
      const run = await settleUntil(t, "the drain ends", async () => {
        await playKubelet();
        const view = await t.advance("10s");
        return view.endedAtMs === undefined ? undefined : view;
      });
      expect(run).toMatchObject({ status: "done", result: { evicted: 2 } });
      expect(await pods()).toEqual(["agent"]);
      expect(await unschedulable()).toBe(true);
    });

    test("a cancelled drain makes the node schedulable again", async () => {
      const t = await start();
      await settleUntil(t, "one pod has left", async () => {
        await playKubelet();
        await t.advance("1s");
        return (await pods()).length === 2;
      });
      expect(await t.cancel()).toMatchObject({ status: "cancelled" });
      expect(await unschedulable()).toBe(false);
    });

    test("a drain that times out makes the node schedulable again and names the blocking pod", async () => {
      const t = await start(Date.now() - 3_600_000);
      expect(await t.settle()).toMatchObject({
        status: "failed",
        error: {
          message: expect.stringMatching(/disruption budgets block the eviction of web-[12]/),
        },
      });
      expect(await unschedulable()).toBe(false);
      expect(await pods()).toHaveLength(3);
    });
  });
});
