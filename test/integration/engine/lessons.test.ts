/** The claims of docs/what-articles-say.md; those about plain requests are in test/conformance. */
import {
  createLocalGate,
  defaultRetry,
  ensureError,
  sleepMs,
  type CallVerb,
  type Gate,
} from "@konverge/core";
import { createGuard } from "@konverge/guard";
import {
  createKubeClient,
  isConflict,
  isInvalid,
  isNotFound,
  isResourceVersionTooLarge,
  loadKubeCredentials,
  retryOnConflict,
  type KubeClient,
} from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { describe, expect, onTestFinished, test } from "vitest";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { usualBreaker } from "../guard/usual-breaker.ts";
import { until } from "../../support/until.ts";

const call = { verb: "get", resource: "widgets", priority: "event" } as const;

describe.each(testServers())("what articles say, on $name", (target) => {
  const harness = useEngines(target, "lessons.test.konverge.dev");
  const clientBehind = (gate: Gate): KubeClient => {
    const credentials = loadKubeCredentials(harness.kubeconfig);
    const client = createKubeClient({ credentials, gate, userAgent: "konverge-test/1" });
    onTestFinished(() => client.close());
    return client;
  };
  const at = (name: string) => ({ namespace, name });
  /** Creates an object, changes it and returns the outdated first version. */
  const makeStale = async (name: string) => {
    const stale = await harness.make(name);
    await harness.client.mutate(harness.Widgets, at(name), (draft) => {
      draft.spec = { size: 2 };
    });
    return stale;
  };

  test("defaultRetry makes five tries within 50 ms, then returns the conflict", async () => {
    const stale = await makeStale("losing");
    let calls = 0;
    let sleptMs = 0;
    const writing = retryOnConflict(
      defaultRetry,
      () => {
        calls += 1;
        return harness.client.replace(harness.Widgets, stale);
      },
      {
        sleep: async (ms, signal) => {
          sleptMs += ms;
          await sleepMs(ms, signal);
        },
      },
    );
    expect(isConflict(await writing.catch(ensureError))).toBe(true);
    expect(calls).toBe(5);
    expect(sleptMs).toBeLessThan(50);
  });

  test("retryOnConflict retries only conflicts, not transient errors", async () => {
    const made = await harness.make("once");
    const { client, Widgets } = harness;
    const future = { resourceVersion: "4000000000" };
    const cases: readonly [(error: unknown) => boolean, () => Promise<unknown>][] = [
      // This replica is behind the requested version: 504, and success on a later try.
      [isResourceVersionTooLarge, () => client.get(Widgets, at("once"), future)],
      [isNotFound, () => client.get(Widgets, at("missing"))],
      [
        isInvalid,
        () =>
          client.replace(Widgets, {
            ...made,
            metadata: { ...made.metadata, labels: { odd: "not a label!" } },
          }),
      ],
    ];
    for (const [isExpected, send] of cases) {
      let calls = 0;
      const error = await retryOnConflict(defaultRetry, () => {
        calls += 1;
        return send();
      }).catch(ensureError);
      expect(isExpected(error), String(error)).toBe(true);
      expect(calls).toBe(1);
    }
  });

  test("objects from the cache are frozen", async () => {
    const seen: unknown[] = [];
    const { records } = await harness.start({
      owns: [ConfigMap],
      backoff: eager,
      reconcile: async ({ object, kube, attempt }) => {
        const name = `${object.metadata.name}-child`;
        if (attempt === 1)
          await kube.create(ConfigMap, { name, ownedBy: object, data: { a: "1" } });
        const [child] = await kube.list(ConfigMap, { ownedBy: object });
        seen.push(child?.data);
        if (attempt === 1 && child?.data !== undefined) child.data["a"] = "2";
      },
    });
    await harness.make("careless");
    await until("it ran twice", () => seen.length >= 2);
    expect(seen.slice(0, 2)).toEqual([{ a: "1" }, { a: "1" }]);
    const first = (await records("careless")).at(-1);
    expect(first?.parsed).toMatchObject({
      outcome: "retry",
      error: { code: "TypeError" },
      hints: [{ code: "cached_object_mutated" }],
    });
    await harness.client.delete(ConfigMap, at("careless-child"));
  });

  test("a conflict is retried without a failure; { requeue: true } is an invalid result", async () => {
    let runs = 0;
    const { queue, key, records } = await harness.start({
      backoff: eager,
      conflictRetry: "job",
      maxFailures: 2,
      reconcile: async ({ object, kube }) => {
        if (object.metadata.name === "invalid") return { requeue: true } as never;
        runs += 1;
        await kube.mutate(object, async (draft) => {
          draft.spec = { size: 3 };
          if (runs > 1) return;
          await harness.client.mutate(harness.Widgets, at("raced"), (other) => {
            other.metadata.labels = { other: "yes" };
          });
        });
        return undefined;
      },
    });
    await harness.make("raced");
    await until("it is written", async () => {
      return (await harness.client.get(harness.Widgets, at("raced"))).spec?.["size"] === 3;
    });
    const first = await until("it is recorded", async () => (await records("raced")).at(-1));
    expect(first.parsed).toMatchObject({ outcome: "conflict" });
    await until("it came to rest", async () => {
      return (await queue.getKey(key("raced")))?.phase === "idle";
    });
    expect(await queue.getKey(key("raced"))).toMatchObject({ failures: 0, conflicts: 0 });
    await harness.make("invalid");
    const refused = await until("the result is refused", async () =>
      (await records("invalid")).at(-1),
    );
    expect(refused.parsed.error).toMatchObject({
      code: "invalid_result",
      message: expect.stringContaining("requeueAfter"),
    });
  });

  test("a loop loses an update if its value was decided before the read", async () => {
    const countUp = async (name: string, decideInside: boolean) => {
      const { Widgets, client } = harness;
      const sizeOf = async () => Number((await client.get(Widgets, at(name))).spec?.["size"]);
      await harness.make(name, { size: 3 });
      const decided = (await sizeOf()) + 1;
      await client.mutate(Widgets, at(name), (draft) => {
        draft.spec = { size: Number(draft.spec?.["size"]) + 1 };
      });
      await retryOnConflict(defaultRetry, async () => {
        const read = await client.get(Widgets, at(name));
        const size = decideInside ? Number(read.spec?.["size"]) + 1 : decided;
        await client.replace(Widgets, { ...read, spec: { size } });
      });
      return sizeOf();
    };
    expect(await countUp("decided-before", false)).toBe(4);
    expect(await countUp("decided-inside", true)).toBe(5);
  });

  test("a textbook breaker opens for conflicts and floods when half open; the guard does not", async () => {
    const stale = await makeStale("quarrel");
    const { Widgets, client } = harness;
    const nowMs = { value: 0 };
    const breaker = usualBreaker({ maxFailures: 5, resetMs: 1_000, clock: () => nowMs.value });
    for (let n = 0; n < 5; n++) {
      const lost = breaker(() => client.replace(Widgets, stale)).catch(ensureError);
      expect(isConflict(await lost)).toBe(true);
    }
    const read = () => client.get(Widgets, at("quarrel"));
    expect(await breaker(read).catch(ensureError)).toMatchObject({ message: "breaker is open" });
    nowMs.value = 1_000;
    let probes = 0;
    const through = await Promise.all(
      Array.from({ length: 10 }, () =>
        breaker(() => {
          probes += 1;
          return read();
        }),
      ),
    );
    expect(through).toHaveLength(10);
    expect(probes).toBe(10);

    const guard = await openGuard("quarrel", { ratePerSecond: 2_000, burst: 2_000 });
    const guarded = clientBehind(guard);
    for (let n = 0; n < 30; n++) {
      const lost = guarded.replace(Widgets, stale).catch(ensureError);
      expect(isConflict(await lost)).toBe(true);
    }
    expect((await guarded.get(Widgets, at("quarrel"))).spec).toEqual({ size: 2 });
    expect(guard.breaker.mode).toBe("closed");
  });

  test("one token for a read and a write doubles the rate", async () => {
    await harness.make("counted");
    const verbs: CallVerb[] = [];
    const open = createLocalGate({ ratePerSecond: 2_000, burst: 2_000 });
    const client = clientBehind({
      admit: (one, options) => {
        verbs.push(one.verb);
        return open.admit(one, options);
      },
    });
    await client.mutate(harness.Widgets, at("counted"), (draft) => {
      draft.spec = { size: 2 };
    });
    expect(verbs).toEqual(["get", "patch"]);
  });

  async function openGuard(cluster: string, limits: { ratePerSecond: number; burst: number }) {
    const guard = await createGuard({
      redis: harness.queues.target,
      prefix: harness.queues.prefix,
      cluster,
      workerId: `lessons-${crypto.randomUUID()}`,
      limits,
    });
    onTestFinished(() => guard.close());
    return guard;
  }
});

test("two in-process limiters admit twice the burst; one shared bucket does not", async () => {
  const limits = { ratePerSecond: 20, burst: 5 };
  const alone = [createLocalGate(limits), createLocalGate(limits)];
  const permits = await Promise.all(
    alone.flatMap((gate) => Array.from({ length: 5 }, () => gate.admit(call))),
  );
  expect(permits.map(({ waitedMs }) => waitedMs)).toEqual(Array.from({ length: 10 }, () => 0));

  const prefix = `test-lessons-${process.pid}-${Date.now()}`;
  const redis = { url: process.env["REDIS_URL"] ?? "" };
  const shared = await Promise.all(
    ["a", "b"].map((workerId) =>
      createGuard({ redis, prefix, cluster: "default", workerId, limits }),
    ),
  );
  onTestFinished(async () => {
    await Promise.all(shared.map((guard) => guard.close()));
  });
  const beganMs = performance.now();
  const each = 10;
  await Promise.all(
    shared.flatMap((guard) =>
      Array.from({ length: each }, async () => {
        const permit = await guard.admit(call);
        permit.settle({ kind: "response", status: 200 });
      }),
    ),
  );
  // One bucket limits the rate of all callers (P5).
  const seconds = (performance.now() - beganMs) / 1_000;
  expect(2 * each).toBeLessThanOrEqual(limits.ratePerSecond * seconds + limits.burst);
});
