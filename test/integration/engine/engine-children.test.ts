import type { ApiObject, ResourceType } from "@konverge/core";
import { child, createDirectKube } from "@konverge/engine";
import {
  ignoreNotFound,
  setControllerReference,
  setOwnerReference,
  type ApplyCallOptions,
} from "@konverge/kube";
import { ConfigMap, Deployment, Secret, Service } from "@konverge/kube/kinds";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  reconcileChildren,
  type ChildrenHost,
} from "../../../libs/engine/src/access/reconcile-children.ts";
import { until } from "../../support/until.ts";
import { testServers } from "../kube/kube-servers.ts";
import { eager, namespace, useEngines } from "./engine-harness.ts";

const labels = { app: "web" };
const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "kids-web", labels },
  spec: {
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        containers: [
          {
            name: "web",
            image: "nginx",
            ports: [{ containerPort: 80 }],
            // Stored as "1" and 1Gi.
            resources: { limits: { cpu: "1000m", memory: "1024Mi" } },
          },
        ],
      },
    },
  },
};
const service = child(Service, {
  name: "kids-web",
  spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: 8080 }] },
});
const page = (text: string) =>
  child(ConfigMap, { metadata: { name: "kids-page", labels }, data: { text } });

describe.each(testServers())("kube.reconcileChildren on $name", (target) => {
  const harness = useEngines(target, "children.test.konverge.dev");
  const at = (name: string) => ({ namespace, name });

  test("applies the list, deletes the rest, and sends nothing for children that are unchanged", async () => {
    const seen: {
      readonly text: string;
      readonly serial: unknown;
      readonly report: { readonly deleted: readonly string[]; readonly [field: string]: unknown };
    }[] = [];
    const { records, queue, key } = await harness.start({
      owns: [Deployment, Service, ConfigMap],
      backoff: eager,
      reconcile: async ({ object, kube }) => {
        const text = String(object.spec?.["text"]);
        const first = await kube.reconcileChildren(
          object,
          text === "none" ? [deployment] : [deployment, service, page(text)],
        );
        const [web] = first.children;
        seen.push({
          text,
          serial: object.spec?.["serial"],
          report: {
            ready: first.ready,
            message: first.message,
            name: web.object.metadata.name,
            changes: first.children.map(({ change, status }) => `${change} ${status}`),
            deleted: first.deleted.map(({ object: gone }) => `${gone.kind} ${gone.metadata.name}`),
          },
        });
      },
    });
    const change = async (spec: object) => {
      const serial = seen.length + 1;
      await harness.client.mutate(harness.Widgets, at("kids"), (draft) => {
        draft.spec = { ...draft.spec, ...spec, serial };
      });
      await until("it is reconciled", () => seen.some((each) => each.serial === serial));
      await until("it is idle", async () => (await queue.getKey(key("kids")))?.phase === "idle");
    };
    const writes = async () =>
      (await records("kids")).flatMap(({ parsed }) => parsed["writes"] as object[]).length;
    await harness.make("kids", { text: "a" });
    await until("all children exist", async () => {
      return (await harness.client.get(ConfigMap, at("kids-page")).catch(ignoreNotFound)) && true;
    });
    await until("it is idle", async () => (await queue.getKey(key("kids")))?.phase === "idle");
    expect(seen[0]?.report).toMatchObject({
      ready: false,
      message: `Deployment ${namespace}/kids-web its controller has not observed it`,
      name: "kids-web",
      changes: ["created inProgress", "created current", "created current"],
    });

    const before = await writes();
    await change({ other: 1 });
    expect(await writes()).toBe(before);
    expect(seen.at(-1)?.report).toMatchObject({
      changes: ["unchanged inProgress", "unchanged current", "unchanged current"],
    });

    await change({ text: "b" });
    expect(await writes()).toBe(before + 1);
    expect((await harness.client.get(ConfigMap, at("kids-page"))).data).toEqual({ text: "b" });

    // Another writer changes a field of a child: it is set again.
    await harness.client.mutate(Service, at("kids-web"), (draft) => {
      for (const port of draft.spec?.ports ?? []) port.targetPort = 9090;
    });
    await until("the field is set again", async () => {
      const found = await harness.client.get(Service, at("kids-web"));
      return found.spec?.ports?.[0]?.targetPort === 8080;
    });
    await change({ text: "none" });
    // Each deletion starts another reconcile, which finds nothing to delete.
    expect(seen.flatMap(({ report }) => report.deleted)).toEqual([
      "Service kids-web",
      "ConfigMap kids-page",
    ]);
    for (const type of [Service, ConfigMap] as readonly ResourceType[]) {
      const { items } = await harness.client.list(type, { namespace, labelSelector: "app=web" });
      expect(items).toEqual([]);
    }
    await harness.client.delete(Deployment, at("kids-web"));
  });

  test("rejects kinds that are not owned, duplicates, a second list, and names of others", async () => {
    await harness.client.create(ConfigMap, { metadata: at("kids-page"), data: { of: "others" } });
    const errors: string[] = [];
    await harness.start({
      owns: [ConfigMap],
      backoff: eager,
      reconcile: async ({ object, kube }) => {
        const other = { ...object, metadata: { ...object.metadata, uid: "other" } };
        for (const [owner, list] of [
          [object, [page("a")]],
          [object, []],
          [other, [service]],
          [{ ...other, metadata: { ...other.metadata, uid: "more" } }, [page("a"), page("b")]],
        ] as const) {
          await kube.reconcileChildren(owner, list).catch((error: unknown) => {
            errors.push((error as Error).message);
          });
        }
      },
    });
    await harness.make("rejects");
    await until("all are rejected", () => errors.length >= 4);
    expect(errors.slice(0, 4)).toEqual([
      expect.stringContaining("kids-page exists and has no controller"),
      expect.stringContaining("pass all children in one call"),
      expect.stringContaining("children[0]: Service in v1 is not in owns"),
      expect.stringContaining("children[1]: ConfigMap"),
    ]);
    const kept = await harness.client.get(ConfigMap, at("kids-page"));
    expect([kept.data, kept.metadata.ownerReferences]).toEqual([{ of: "others" }, undefined]);
    await harness.client.delete(ConfigMap, at("kids-page"));
  });

  test("random lists with kills between calls converge to the last list, and touch nothing else", async () => {
    const { client } = harness;
    let serial = 0;
    const names = ["a", "b", "c", "d"];
    const entry = fc.record({
      type: fc.constantFrom<ResourceType>(ConfigMap, Secret),
      name: fc.constantFrom(...names),
      value: fc.constantFrom("1", "2"),
    });
    const list = fc.uniqueArray(entry, {
      maxLength: 6,
      selector: ({ type, name }) => `${type.kind}/${name}`,
    });
    const step = fc.record({
      list,
      /** The number of writes after which the process dies, and whether the last one arrives. */
      kill: fc.option(fc.record({ after: fc.nat(4), arrives: fc.boolean() })),
      /** A name whose object another writer changes or deletes afterwards. */
      stranger: fc.option(fc.record({ name: fc.constantFrom(...names), deletes: fc.boolean() })),
    });
    const dataOf = (type: ResourceType, value: string) =>
      type.kind === "Secret" ? { stringData: { v: value } } : { data: { v: value } };
    const run = async (
      steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[],
    ) => {
      const prefix = `p${++serial}`;
      const full = (name: string) => `${prefix}-${name}`;
      const owner = await client.create(ConfigMap, { metadata: at(full("owner")) });
      const other = await client.create(ConfigMap, { metadata: at(full("other")) });
      const foreign = [
        { metadata: at(full("free")) },
        withReference(setControllerReference, full("others"), other),
        withReference(setControllerReference, full("unmarked"), owner),
        withReference(setOwnerReference, full("referred"), owner),
      ];
      const before: ApiObject[] = [];
      for (const object of foreign) before.push(await client.create(ConfigMap, object));
      let writes = 0;
      const host = (kill: { readonly after: number; readonly arrives: boolean } | null) => {
        const kube = createDirectKube(client.scoped({ fieldManager: "konverge/kids" }), namespace);
        let left = kill?.after ?? Infinity;
        const dying =
          <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
          async (...args: A): Promise<R> => {
            if (left === 0 && kill?.arrives !== true) throw new Error("killed");
            writes += 1;
            const answer = await call(...args);
            if (left-- === 0) throw new Error("killed");
            return answer;
          };
        return {
          client,
          controller: "kids",
          owns: [ConfigMap, Secret],
          kube: {
            ...kube,
            apply: dying((type: ResourceType, object: never, how: ApplyCallOptions) =>
              kube.apply(type, object, how),
            ),
            delete: dying((...args: Parameters<typeof kube.delete>) => kube.delete(...args)),
          },
        } as unknown as ChildrenHost;
      };
      const reconcile = (
        wanted: typeof list extends fc.Arbitrary<infer L> ? L : never,
        kill: Parameters<typeof host>[0],
      ) =>
        reconcileChildren(host(kill), {
          owner,
          listed: wanted.map(({ type, name, value }) =>
            child(type, { metadata: { name: full(name) }, ...dataOf(type, value) }),
          ),
          none: undefined,
        });
      for (const { list: wanted, kill, stranger } of steps) {
        await reconcile(wanted, kill).catch((error: unknown) => {
          if (kill === null) throw error;
        });
        if (stranger === null) continue;
        const found = await client.get(ConfigMap, at(full(stranger.name))).catch(ignoreNotFound);
        if (found === undefined) continue;
        if (stranger.deletes) await client.delete(ConfigMap, found.metadata);
        else {
          await client
            .scoped({ fieldManager: "stranger" })
            .mutate(ConfigMap, found.metadata, (draft) => {
              draft.data = { v: "stranger", own: "kept" };
            });
        }
      }
      const last = steps.at(-1)?.list ?? [];
      await reconcile(last, null);
      const left: string[] = [];
      for (const type of [ConfigMap, Secret] as const) {
        const { items } = await client.list(type, { namespace });
        for (const { metadata, data } of items) {
          const isChild =
            metadata.name.startsWith(`${prefix}-`) &&
            names.includes(metadata.name.slice(prefix.length + 1));
          const value = type.kind === "Secret" ? atob(data?.["v"] ?? "") : data?.["v"];
          if (isChild) left.push(`${type.kind}/${metadata.name}=${value}`);
        }
      }
      expect(left.toSorted()).toEqual(
        last.map(({ type, name, value }) => `${type.kind}/${full(name)}=${value}`).toSorted(),
      );
      for (const object of before) {
        expect(await client.get(ConfigMap, object.metadata)).toEqual(object);
      }
      writes = 0;
      const again = await reconcile(last, null);
      expect([writes, again.deleted, again.ready]).toEqual([0, [], true]);
      for (const { metadata } of [...before, owner, other])
        await client.delete(ConfigMap, metadata);
      for (const { type, name } of last)
        await client.delete(type, at(full(name))).catch(ignoreNotFound);
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), run), {
      numRuns: 12,
    });
  });
});

function withReference(
  set: typeof setControllerReference,
  name: string,
  owner: ApiObject,
): { metadata: { namespace: string; name: string } } {
  const object = { metadata: { namespace, name } };
  set(object, owner);
  return object;
}
