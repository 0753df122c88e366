import type { ResourceType } from "@konverge/core";
import { ignoreNotFound, type KubeClient } from "@konverge/kube";
import { describe, expect, test } from "vitest";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

/** Tells of each object that is read at which version, also by clients made of this one. */
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

  test("P3: the object becomes exactly this; a write since the read is a conflict, and the next attempt reads again", async () => {
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
    // What the watch knows, and what the server keeps for those who ask for some version, may be from before the conflict.
    expect(versions).not.toEqual([]);
    expect(versions[0], "the newest").toBeUndefined();
  });

  test("the same again is no write, and an object that nobody read is refused", async () => {
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
