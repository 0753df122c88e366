import { describe, expect, test } from "vitest";
import { defined, type JsonObject } from "@konverge/core";
import type { NewMutation } from "@konverge/mutations";
import { ConfigMap, Deployment } from "@konverge/kube/kinds";
import { testServers } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { RedisMutationStore } from "../../../libs/mutations/src/store/redis-mutation-store.ts";
import { until } from "../../support/until.ts";
import { OPEN_KINDS, useMutations } from "./mutations-harness.ts";

const queues = useQueues();

describe.each(testServers())("mutations on the $name", (server) => {
  const h = useMutations(server, queues);
  const increment = (options: Partial<NewMutation> = {}) =>
    h.mutation([{ kind: "increment", path: "/data/n", by: 1 }], options);
  const outcomes = async (given: readonly NewMutation[]) =>
    (await h.run(given)).map(({ state }) => state);

  test("makes each kind of change, in order, with one write", async () => {
    await h.make({ n: "1", gone: "x" });
    const given = [
      h.mutation([{ kind: "set", path: "/data/a", value: "1" }]),
      h.mutation([{ kind: "merge", patch: { data: { b: "2" } } }]),
      increment(),
      h.mutation([{ kind: "append", path: "/metadata/finalizers", value: "test/hold" }]),
      h.mutation([{ kind: "remove", path: "/data/gone" }]),
      h.mutation([
        { kind: "jsonPatch", patch: [{ op: "copy", from: "/data/a", path: "/data/c" }] },
      ]),
      h.mutation([{ kind: "remove", path: "/metadata/finalizers", value: "test/hold" }]),
      h.mutation([{ kind: "set", path: "/data/a", value: "1" }]),
    ];
    await h.mutations.submit(given);
    h.work();
    const ends = await h.settled(given);
    const found = await h.read();
    expect(found?.data).toEqual({ a: "1", b: "2", c: "1", n: "2" });
    expect(ends.map(({ state }) => state)).toEqual([...Array(7).fill("applied"), "unchanged"]);
    expect(new Set(ends.map(({ resourceVersion }) => resourceVersion))).toEqual(
      new Set([found?.metadata.resourceVersion]),
    );
    expect(h.writes()).toBe(1);
    expect(h.errors).toEqual([]);
  });

  test("applies 200 increments of an object with few writes and keeps the order of its mutations", async () => {
    await h.make();
    const given = Array.from({ length: 200 }, (_, at) =>
      h.mutation([
        { kind: "increment", path: "/data/n", by: 1 },
        { kind: "set", path: "/data/last", value: String(at) },
      ]),
    );
    await h.mutations.submit(given);
    h.work();
    const ends = await h.settled(given);
    expect(new Set(ends.map(({ state }) => state))).toEqual(new Set(["applied"]));
    expect((await h.read())?.data).toEqual({ n: "200", last: "199" });
    expect(h.writes()).toBe(4);
  });

  test("returns the same result for a repeated id, and rejects the id for another mutation", async () => {
    await h.make();
    h.work();
    const given = increment();
    await h.run([given]);
    const other = { ...given, changes: [{ kind: "set", path: "/data/n", value: "9" }] } as const;
    expect(await h.mutations.submit([{ ...given, by: "another caller" }, other])).toEqual([
      { id: given.id, created: false },
      { id: given.id, refused: "id_conflict" },
    ]);
    expect((await h.read())?.data).toEqual({ n: "1" });
  });

  test("ends mutations that do not apply with the reason, and makes the others", async () => {
    const { metadata } = await h.make({ n: "1", text: "no number" });
    h.work();
    const past = increment({ deadlineMs: 1 });
    await h.mutations.submit([past]);
    const given = [
      increment({ uid: "another" }),
      increment({ uid: metadata.uid ?? "" }),
      increment({ preconditions: { exists: false } }),
      increment({ preconditions: { fields: [{ path: "/data/n", value: "1" }] } }),
      h.mutation([{ kind: "increment", path: "/data/text", by: 1 }]),
      h.mutation([{ kind: "set", path: "/data/bad key", value: "x" }]),
      increment(),
    ];
    const ends = await h.run(given);
    expect(ends.map(({ state }) => state)).toEqual([
      "replaced",
      "applied",
      "precondition_failed",
      "precondition_failed",
      "rejected",
      "rejected",
      "applied",
    ]);
    expect(ends[5]?.error?.message).toMatch(/bad key/);
    const [end] = await h.settled([past]);
    const n = end?.state === "expired" ? "3" : "4";
    expect((await h.read())?.data).toEqual({ n, text: "no number" });
  });

  test("ends mutations of a missing object as not_found, or creates it", async () => {
    h.work();
    const given = [
      increment(),
      increment({ uid: "some", createIfMissing: true }),
      increment({ createIfMissing: { data: { n: "5" }, metadata: { labels: { from: "test" } } } }),
      increment({ createIfMissing: { data: { n: "100" } } }),
      increment(),
    ];
    expect(await outcomes(given)).toEqual([
      "not_found",
      "not_found",
      "applied",
      "applied",
      "applied",
    ]);
    const found = await h.read();
    expect(found?.data).toEqual({ n: "8" });
    expect(found?.metadata.labels).toEqual({ from: "test" });
  });

  test("applies under the caller's field manager and reports a conflict of managers", async () => {
    await h.make();
    h.work();
    const apply = (fieldManager: string, value: string, force = false) =>
      h.mutation([
        {
          kind: "apply",
          object: {
            apiVersion: "v1",
            kind: "ConfigMap",
            metadata: { namespace: "default", name: h.name },
            data: { a: value },
          },
          fieldManager,
          force,
        },
      ]);
    expect(
      await outcomes([
        apply("one", "1"),
        apply("one", "1"),
        apply("two", "2"),
        apply("two", "3", true),
      ]),
    ).toEqual(["applied", "unchanged", "rejected", "applied"]);
    expect((await h.read())?.data).toEqual({ a: "3" });
  });

  test("changes the status and the scale of a Deployment", async () => {
    const labels = { app: h.name };
    await h.client.create(Deployment, {
      metadata: { namespace: "default", name: h.name },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "main", image: "main" }] },
        },
      },
    });
    const object = {
      group: "apps",
      version: "v1",
      kind: "Deployment",
      resource: "deployments",
      namespace: "default",
      name: h.name,
    };
    h.work();
    const given = [
      h.mutation([{ kind: "set", path: "/spec/replicas", value: 3 }], {
        object,
        subresource: "scale",
      }),
      h.mutation([{ kind: "set", path: "/status/observedGeneration", value: 7 }], {
        object,
        subresource: "status",
      }),
      h.mutation([{ kind: "set", path: "/metadata/labels/team", value: "shop" }], { object }),
      h.mutation([{ kind: "set", path: "/spec/replicas", value: 3 }], {
        object,
        subresource: "scale",
      }),
    ];
    expect(await outcomes(given)).toEqual(["applied", "applied", "applied", "unchanged"]);
    const at = { namespace: "default", name: h.name };
    const found = await h.client.get(Deployment, at);
    expect(found.spec?.replicas).toBe(3);
    expect(found.status?.observedGeneration).toBe(7);
    expect(found.metadata.labels).toEqual({ team: "shop" });
    await h.client.delete(Deployment, at);
  });

  test("cancels a waiting mutation, and none that has ended", async () => {
    await h.make();
    const given = [increment(), increment()] as const;
    await h.mutations.submit(given);
    expect(await h.mutations.cancel(given[0].id, "someone")).toBe("cancelled");
    expect(await h.mutations.cancel("unknown")).toBe("missing");
    h.work();
    const ends = await h.settled(given);
    expect(ends.map(({ state }) => state)).toEqual(["cancelled", "applied"]);
    expect(ends[0]?.error?.message).toBe("cancelled by someone");
    expect(await h.mutations.cancel(given[1].id)).toBe("ended");
    expect((await h.read())?.data).toEqual({ n: "1" });
  });

  test("lists mutations by object and state, newest first, in pages", async () => {
    await h.make();
    const given = Array.from({ length: 25 }, () => increment());
    await h.mutations.submit(given);
    await h.mutations.cancel(given[3]?.id ?? "");
    const newest = given.map(({ id }) => id).toReversed();
    const pages: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await h.mutations.list({
        limit: 10,
        ...defined({ cursor }),
      });
      pages.push(...page.mutations.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(pages).toEqual(newest);
    const { object } = increment();
    const waiting = await h.mutations.list({ object, state: "waiting", limit: 500 });
    expect(waiting.mutations.map(({ id }) => id)).toEqual(
      newest.filter((id) => id !== given[3]?.id),
    );
    expect((await h.mutations.list({ state: "applied" })).mutations).toEqual([]);
  });

  test("a sweep requests an object whose submitter died before it did", async () => {
    await h.make();
    const given = increment();
    await h.mutations.submit([given]);
    // As if the request had never been made.
    const keys = await queues.redis.keys(`${queues.prefix}:{default}*`);
    await queues.redis.unlink(...keys);
    await queues.redis.zadd(`${queues.prefix}:{default/mutations}/objects`, "1", await oneObject());
    h.work({ sweepEveryMs: 100 });
    const [end] = await h.settled([given]);
    expect(end?.state).toBe("applied");
  });
  const oneObject = async () => {
    const [object = ""] = await queues.redis.zrange(
      `${queues.prefix}:{default/mutations}/objects`,
      "0",
      "-1",
    );
    return object;
  };

  test("ends waiting mutations after their deadlines although no worker takes their object", async () => {
    const relayed = h.relay.hold({ method: "GET", path: h.path() });
    await h.make();
    h.work({ sweepEveryMs: 50, concurrency: 1 });
    await h.mutations.submit([increment()]);
    await relayed.arrived;
    const late = increment({ deadlineMs: 20 });
    await h.mutations.submit([late]);
    const [end] = await h.settled([late]);
    expect(end?.state).toBe("expired");
    relayed.release();
  });

  test("forgets all old mutations in one sweep, and none while a restored Redis is held", async () => {
    await h.make();
    const given = Array.from({ length: 1_000 }, () => increment());
    await h.mutations.submit(given);
    await Promise.all(given.map(({ id }) => h.mutations.cancel(id)));
    const late = increment({ deadlineMs: 1, object: { ...increment().object, name: "late" } });
    // Not requested, so that only a sweep can end it.
    await new RedisMutationStore({
      call: (run) => run(queues.redis),
      prefix: queues.prefix,
      cluster: "default",
      retentionMs: 60_000,
    }).submit([late]);
    const ended = `${queues.prefix}:{default/mutations}/ended`;
    await queues.redis.zunionstore(ended, 1, ended, "WEIGHTS", 0);
    const checked = Promise.withResolvers<void>();
    const held = h.work({
      concurrency: 1,
      mayStart: async () => {
        checked.resolve();
        return false;
      },
    });
    await checked.promise;
    await held.stop();
    expect(await queues.redis.zcard(ended)).toBe(1_000);
    h.work({ sweepEveryMs: 600_000 });
    await until("all are forgotten", async () => (await queues.redis.zcard(ended)) <= 1);
    expect((await h.settled([late])).map(({ state }) => state)).toEqual(["expired"]);
  });

  test("does not start from an object that was written in another version of its kind", async () => {
    const { metadata } = await h.make({ n: "1" });
    const carried = {
      apiVersion: "v2",
      kind: "ConfigMap",
      metadata: metadata as unknown as JsonObject,
      data: { n: "100" },
    };
    const enter = async () => ({ carried, waitedMs: 0, leave: () => undefined });
    h.work({ lanes: { enter, close: () => undefined } });
    expect(await outcomes([increment()])).toEqual(["applied"]);
    expect((await h.read())?.data).toEqual({ n: "2" });
  });

  test("rejects a mutation that the configuration of the worker does not allow anymore", async () => {
    await h.make();
    const kind = { ...ConfigMap, paths: ["/metadata/labels"] };
    h.work({ kinds: [kind] });
    const ends = await h.run([
      increment(),
      h.mutation([{ kind: "set", path: "/metadata/labels/team", value: "shop" }]),
    ]);
    expect(ends.map(({ state }) => state)).toEqual(["rejected", "applied"]);
    expect(ends[0]?.error?.message).toContain("mutations.kinds");
  });

  test("leaves a mutation of a kind that only another worker opens to that worker", async () => {
    await h.make();
    const [configMaps, deployments] = OPEN_KINDS;
    const kinds = `${queues.prefix}:{default/mutations}/kinds`;
    await queues.redis.hset(kinds, "configmaps.", `${Date.now()} ${JSON.stringify(configMaps)}`);
    const older = h.work({ kinds: deployments === undefined ? [] : [deployments] });
    const given = increment();
    await h.mutations.submit([given]);
    await until("the older worker defers", () => older.finished > 0);
    await older.stop();
    h.work();
    expect((await h.settled([given])).map(({ state }) => state)).toEqual(["applied"]);
  });

  test("removes the values of a sensitive kind from Redis at the end", async () => {
    await h.make();
    const given = h.mutation([{ kind: "set", path: "/data/a", value: "hidden" }], {
      sensitive: true,
      createIfMissing: { data: { b: "hidden" } },
    });
    h.work();
    const [end] = await h.run([given]);
    expect(end?.changes).toEqual([{ kind: "set", path: "/data/a" }]);
    const row = await queues.redis.hgetall(
      `${queues.prefix}:{default/mutations}/mutation/${given.id}`,
    );
    expect(JSON.stringify(row)).not.toContain("hidden");
    const other = {
      ...given,
      changes: [{ kind: "set", path: "/data/b", value: "hidden" }],
    } as const;
    expect(await h.mutations.submit([given, other])).toEqual([
      { id: given.id, created: false },
      { id: given.id, refused: "id_conflict" },
    ]);
  });

  test("reports writes, conflicts, failed attempts and the time of mutations that landed", async () => {
    const found = { writes: [] as number[], landed: [] as number[], conflicts: 0, failures: 0 };
    const observer = {
      mutationsWritten: (mutations: number) => void found.writes.push(mutations),
      mutationLanded: (durationMs: number) => void found.landed.push(durationMs),
      mutationConflicted: () => void (found.conflicts += 1),
      mutationsFailed: () => void (found.failures += 1),
    };
    const made = await h.make({ n: "0" });
    const held = h.relay.hold({ method: "PATCH", path: h.path() });
    const poison = h.mutation([{ kind: "set", path: "/data/not allowed", value: "1" }]);
    const given = [increment(), increment(), poison, increment(), increment()];
    await h.mutations.submit(given);
    await h.mutations.cancel(given.at(-1)?.id ?? "");
    expect(await h.mutations.counts()).toMatchObject({ accepted: 5, waiting: 4 });
    h.work({ observer });
    await held.arrived;
    await h.client.replace(ConfigMap, { ...made, data: { n: "10" } });
    held.release();
    await h.settled(given);
    await until("three have landed", () => found.landed.length === 3);
    expect(found).toMatchObject({ conflicts: 1, failures: 0 });
    h.relay.refuse({ method: "PATCH", path: h.path() }, 500, "InternalError");
    await h.run([increment()]);
    await until("four have landed", () => found.landed.length === 4);
    expect((await h.read())?.data).toEqual({ n: "14" });
    expect(found.failures).toBe(1);
    expect(found.writes.reduce((sum, each) => sum + each, 0)).toBe(4);
    expect(found.landed).toHaveLength(4);
    expect(Math.min(...found.landed)).toBeGreaterThanOrEqual(0);
    const { ended, ...counts } = await h.mutations.counts();
    expect(counts).toEqual({ accepted: 6, waiting: 0 });
    expect(ended).toMatchObject({ applied: 4, rejected: 1, cancelled: 1, expired: 0 });
  });

  test("leaves nothing in Redis but ended mutations, and announces the open kinds", async () => {
    await h.make();
    const kind = {
      group: "",
      version: "v1",
      kind: "ConfigMap",
      resource: "configmaps",
      scope: "Namespaced",
    } as const;
    h.work({ kinds: [kind], sweepEveryMs: 50 });
    await until("the kinds are announced", async () => (await h.mutations.openKinds()).length > 0);
    expect(await h.mutations.openKinds()).toEqual([kind]);
    const given = Array.from({ length: 5 }, () => increment());
    await h.run(given);
    const root = `${queues.prefix}:{default/mutations}`;
    const names = (await queues.redis.keys(`${root}/*`)).map((key) => key.slice(root.length + 1));
    const mutations = given.map(({ id }) => `mutation/${id}`);
    const object = `of/mutations/default/configmaps/default/${h.name}`;
    expect(names.toSorted()).toEqual(
      [
        ...mutations,
        object,
        "ended",
        "index",
        "installation",
        "kinds",
        "outcomes",
        "sequence",
      ].toSorted(),
    );
  });
});
