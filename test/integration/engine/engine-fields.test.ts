import { describe, expect, test } from "vitest";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

const FIELDS = { strategy: "fields" } as const;

describe.each(testServers())("strategy fields on $name", (target) => {
  const harness = useEngines(target, "fields.engine.test.konverge.dev");

  test("different fields never conflict", async () => {
    const shared = { namespace, name: "shared" };
    await harness.client.create(ConfigMap, { metadata: shared, data: { first: "" } });
    const names = Array.from({ length: 10 }, (_, n) => `w${n}`);
    // All handlers read before any writes, so that each write meets a newer version.
    let waiting = names.length;
    const all = Promise.withResolvers<void>();
    const { records } = await harness.start({
      concurrency: 10,
      backoff: eager,
      reconcile: async ({ object, kube }) => {
        await kube.mutate(
          { type: ConfigMap, ...shared },
          async (draft) => {
            draft.data![object.metadata.name] = "written";
            if (--waiting === 0) all.resolve();
            await all.promise;
          },
          FIELDS,
        );
      },
    });
    await Promise.all(names.map((name) => harness.make(name)));
    const { data } = await until("all are written", async () => {
      const found = await harness.client.get(ConfigMap, shared);
      return Object.keys(found.data ?? {}).length === 11 && found;
    });
    expect(data).toEqual({
      first: "",
      ...Object.fromEntries(names.map((name) => [name, "written"])),
    });
    for (const name of names) {
      // A widget created while the watch starts is reconciled twice; the second time nothing is written.
      const record = await until("it is recorded", async () =>
        (await records(name))
          .map(({ parsed }) => parsed)
          .find(({ writes }) => Array.isArray(writes) && writes.length > 0),
      );
      expect(record).toMatchObject({
        outcome: "done",
        conflicts: [],
        waits: { laneMs: 0 },
        writes: [
          { verb: "patch", name: "shared", patch: { data: { [name]: "written" } }, conflicts: [] },
        ],
      });
    }
    await harness.client.delete(ConfigMap, shared);
  });

  test("writes a status from the given object with one call; a change of a read field is a conflict", async () => {
    const { records, queue, key } = await harness.start({
      backoff: eager,
      conflictRetry: "job",
      reconcile: async ({ object, kube, attempt }) => {
        await kube.mutateStatus(
          object,
          async (draft) => {
            if (attempt === 1) {
              await harness.client.mutate(harness.Widgets, { namespace, name: "s" }, (other) => {
                other.spec = { size: 2 };
              });
            }
            draft.status["size"] = draft.spec?.["size"] ?? 0;
          },
          FIELDS,
        );
      },
    });
    await harness.make("s");
    await until("its status is written", async () => {
      const { status } = await harness.client.get(harness.Widgets, { namespace, name: "s" });
      return status?.["size"] === 2;
    });
    const outcomes = await until("both are recorded", async () => {
      const stored = (await records("s")).map(({ parsed }) => parsed);
      return stored.length >= 2 && stored;
    });
    expect(outcomes.map(({ outcome }) => outcome)).toContain("conflict");
    expect(await queue.getKey(key("s"))).toMatchObject({ failures: 0 });
  });

  test("does not count fields that another manager changed itself as taken over", async () => {
    const { records } = await harness.start({
      reconcile: async ({ object, kube }) => {
        let isFirst = true;
        await kube.mutate(
          object,
          async (draft) => {
            (draft.spec ??= {})["mine"] = true;
            if (isFirst) await theirs(2);
            isFirst = false;
          },
          FIELDS,
        );
      },
    });
    const theirs = (size: number) =>
      harness.client
        .scoped({ fieldManager: "kubectl" })
        .mutate(harness.Widgets, { namespace, name: "t" }, (draft) => {
          draft.spec = { ...draft.spec, size };
        });
    await harness.make("t", { size: 0 });
    const record = await until("it has written", async () =>
      (await records("t"))
        .map(({ parsed }) => parsed)
        .find(({ writes }) => writes !== undefined && (writes as unknown[]).length > 0),
    );
    expect(record).toMatchObject({ writes: [{ patch: { spec: { mine: true } }, conflicts: [] }] });
    expect(record).not.toMatchObject({ writes: [{ fieldsTakenOver: expect.anything() }] });
  });

  test("redacting a Secret does not count as reading all of its fields", async () => {
    const secret = { namespace, name: "fields" };
    await harness.client.create(Secret, { metadata: secret, data: { a: "QQ==" } });
    const { records } = await harness.start({
      reconcile: async ({ kube }) => {
        await kube.mutate(
          { type: Secret, ...secret },
          async (draft) => {
            draft.data!["mine"] = "Tg==";
            await harness.client.mutate(
              Secret,
              secret,
              (other) => void (other.data!["a"] = "Qg=="),
            );
          },
          FIELDS,
        );
      },
    });
    await harness.make("k");
    const record = await until("it is recorded", async () => (await records("k"))[0]?.parsed);
    expect(record).toMatchObject({ outcome: "done", conflicts: [], writes: [{ conflicts: [] }] });
    expect(JSON.stringify(record)).not.toContain("Tg==");
    expect((await harness.client.get(Secret, secret)).data).toEqual({ a: "Qg==", mine: "Tg==" });
    await harness.client.delete(Secret, secret);
  });
});
