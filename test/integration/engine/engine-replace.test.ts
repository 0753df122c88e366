import type { ResourceType } from "@konverge/core";
import { ignoreNotFound, type KubeClient } from "@konverge/kube";
import { describe, expect, test } from "vitest";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

/** Reports the version of each read object, including reads of derived clients. */
function withReads(
  client: KubeClient,
  note: (type: ResourceType, version: string | undefined) => void,
): KubeClient {
  return {
    ...client,
    scoped: (options) => withReads(client.scoped(options), note),
    async get(type, target, options) {
      note(type, options?.resourceVersion);
      return await client.get(type, target, options);
    },
  };
}

describe.each(testServers())("kube.replace on $name", (target) => {
  const harness = useEngines(target, "replace.test.konverge.dev");
  const find = (name: string) =>
    harness.client.get(harness.Widgets, { namespace, name }).catch(ignoreNotFound);

  test("P3: replaces the object exactly; a write since the read is a conflict, and the next attempt reads again", async () => {
    let attempts = 0;
    const versions: (string | undefined)[] = [];
    const { records, queue, key } = await harness.start(
      {
        backoff: eager,
        reconcile: async ({ object, kube }) => {
          attempts += 1;
          if (attempts === 1) {
            await harness.client.mutate(harness.Widgets, { namespace, name: "a" }, (draft) => {
              draft.spec = { ...draft.spec, foreign: true };
            });
          }
          await kube.replace({ ...object, spec: { size: 2 } });
        },
      },
      {
        client: withReads(harness.client, ({ kind }, version) => {
          if (kind === harness.Widgets.kind) versions.push(version);
        }),
      },
    );
    await harness.make("a", { size: 1, odd: "one" });
    await until("it is written", async () => (await find("a"))?.spec?.["size"] === 2);
    expect((await find("a"))?.spec).toEqual({ size: 2 });
    const [first, second] = await until("both are recorded", async () => {
      const stored = (await records("a")).toReversed();
      return stored.length >= 2 && stored.map(({ parsed }) => parsed);
    });
    expect(first).toMatchObject({ outcome: "conflict", writes: [], conflicts: [{ name: "a" }] });
    expect(second).toMatchObject({ outcome: "done", writes: [{ verb: "update", name: "a" }] });
    expect(await queue.getKey(key("a"))).toMatchObject({ failures: 0 });
    // The watch, and the server's cache for reads of any version, may be older than the conflict.
    expect(versions).not.toEqual([]);
    expect(versions[0], "the newest").toBeUndefined();
  });

  test("does not write an equal object, and rejects an object that was not read", async () => {
    const { records } = await harness.start({
      backoff: eager,
      maxFailures: 1,
      reconcile: async ({ object, kube }) => {
        const same = await kube.replace(object);
        expect(same.metadata.resourceVersion).toBe(object.metadata.resourceVersion);
        const { resourceVersion: _unread, ...metadata } = object.metadata;
        await kube.replace({ ...object, metadata });
      },
    });
    await harness.make("b");
    const record = await until("it is recorded", async () => (await records("b")).at(-1)?.parsed);
    expect(record).toMatchObject({
      writes: [],
      error: { code: "invalid_request", message: expect.stringContaining("resourceVersion") },
    });
  });
});
