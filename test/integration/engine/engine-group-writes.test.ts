import type { ApiObject } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

const WRITERS = 24;
const HOT = "hot";

/** Releases all at once, so that they wait for the lane together. */
function barrier(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let arrived = 0;
  return async () => {
    arrived += 1;
    if (arrived >= count) resolve();
    await promise;
  };
}

describe.each(testServers())("writes of one object together, on $name", (target) => {
  const harness = useEngines(target, "group.konverge.dev");
  const names = Array.from({ length: WRITERS }, (_, n) => `writer-${n}`);

  test("P3: 24 concurrent increments of one object need fewer calls than writes, and none is lost", async () => {
    const { Widgets, client } = harness;
    await harness.make(HOT, { count: 0 });
    const together = barrier(WRITERS);
    const { queue, key, records } = await harness.start({
      concurrency: WRITERS,
      predicate: () => false,
      reconcile: async ({ object, kube }) => {
        if (object.metadata.name === HOT) return;
        await together();
        await kube.mutate({ type: Widgets, namespace, name: HOT }, (draft) => {
          // A key may run more than once; its increment is stored on the object.
          if (draft.metadata.labels?.[object.metadata.name] !== undefined) return;
          draft.spec = { ...draft.spec, count: Number(draft.spec?.["count"] ?? 0) + 1 };
          draft.metadata.labels = { ...draft.metadata.labels, [object.metadata.name]: "here" };
        });
      },
    });
    for (const name of names) await harness.make(name);
    await Promise.all(
      names.map((name) => queue.request(key(name), { kind: "http" }, { class: "interactive" })),
    );
    const done = async (name: string) =>
      (await records(name)).find(({ parsed }) => (parsed["writes"] as unknown[]).length > 0)
        ?.parsed;
    const written = await Promise.all(
      names.map((name) => until(`the write of ${name}`, () => done(name))),
    );
    const hot = await client.get(Widgets, { namespace, name: HOT });
    expect(hot.spec?.["count"]).toBe(WRITERS);
    expect(Object.keys(hot.metadata.labels ?? {})).toHaveLength(WRITERS);
    // Each record has its own part of the write: one label, one increment.
    for (const [index, record] of written.entries()) {
      const [write] = record["writes"] as { patch: ApiObject & { spec: { count: number } } }[];
      expect(Object.keys(write?.patch.metadata.labels ?? {})).toEqual([names[index]]);
    }
    const versions = new Set(
      written.map((record) => (record["writes"] as { toVersion?: string }[])[0]?.toVersion),
    );
    expect(versions.has(undefined)).toBe(false);
    expect(versions.size).toBeLessThan(WRITERS / 2);
  });

  test("writes the others if the server rejects one change, which gets its own error", async () => {
    const { Widgets, client } = harness;
    await harness.make(HOT);
    const together = barrier(WRITERS);
    const { queue, key, records } = await harness.start({
      concurrency: WRITERS,
      predicate: () => false,
      reconcile: async ({ object, kube }) => {
        const { name } = object.metadata;
        if (name === HOT) return;
        if (names.includes(name)) await together();
        await kube.mutate({ type: Widgets, namespace, name: HOT }, (draft) => {
          // A label must not contain a space.
          const value = name === "writer-7" ? "not valid" : "here";
          draft.metadata.labels = { ...draft.metadata.labels, [name]: value };
        });
      },
    });
    for (const name of names) await harness.make(name);
    await Promise.all(
      names.map((name) => queue.request(key(name), { kind: "http" }, { class: "interactive" })),
    );
    const rejected = await until("the refusal", async () =>
      (await records("writer-7")).find(({ outcome }) => outcome === "rejected"),
    );
    expect(rejected.error?.message).toContain("not valid");
    await until("the writes of the others", async () => {
      const hot = await client.get(Widgets, { namespace, name: HOT });
      return Object.keys(hot.metadata.labels ?? {}).length === WRITERS - 1;
    });
    for (const name of names.filter((one) => one !== "writer-7")) {
      const outcomes = (await records(name)).map(({ outcome }) => outcome);
      expect(outcomes).not.toContain("rejected");
    }
  });
});
