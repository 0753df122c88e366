import type { ApiObject, JsonObject, ResourceType } from "@konverge/core";
import {
  ignoreNotFound,
  isConflict,
  isServed,
  ownerOf,
  setControllerReference,
} from "@konverge/kube";
import {
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  Event,
  Job,
  Pod,
  Secret,
} from "@konverge/kube/kinds";
import { defineResource, type AttemptKube, type ReconcileContext } from "@konverge/engine";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

type ConfigMapObject = NonNullable<(typeof ConfigMap)["objectType"]>;

describe.each(testServers())("writes of a handler on $name", (target) => {
  const harness = useEngines(target, "writes.test.konverge.dev");

  /** Runs the function as a handler for a new object, and returns the record of the first attempt. */
  const attempt = async (
    name: string,
    act: (kube: AttemptKube, context: ReconcileContext<Widget>) => Promise<unknown>,
    owns: readonly ResourceType[] = [],
  ) => {
    const { records } = await harness.start({
      owns,
      backoff: eager,
      maxFailures: 1,
      reconcile: async (context) => void (await act(context.kube, context)),
    });
    await harness.make(name);
    return await until("it is recorded", async () => (await records(name)).at(-1)?.parsed);
  };

  describe("delete", () => {
    const place = (name: string) => ({ namespace, name });
    /** A Job, which the server orphans by default, if the server has this kind. */
    const makeOwner = async (name: string) => {
      const { client } = harness;
      const metadata = place(name);
      if (!(await isServed(client, Job))) return await client.create(ConfigMap, { metadata });
      const pod = { containers: [{ name: "a", image: "a" }], restartPolicy: "Never" };
      return await client.create(Job, { metadata, spec: { template: { spec: pod } } });
    };
    const find = async ({ apiVersion, kind, metadata }: ApiObject) =>
      await harness.client
        .get(await harness.client.resolveType(apiVersion, kind), metadata)
        .catch(ignoreNotFound);

    test("deletes a Job and does not keep its Pods", async () => {
      const owner = await makeOwner("background");
      expect(await attempt("background", (kube) => kube.delete(owner))).toMatchObject({
        outcome: "done",
      });
      expect(await find(owner)).toBeUndefined();
    });

    test.each([
      { propagationPolicy: "Orphan", finalizer: "orphan" },
      { propagationPolicy: "Foreground", finalizer: "foregroundDeletion" },
    ] as const)("takes $propagationPolicy", async ({ propagationPolicy, finalizer }) => {
      const name = finalizer.toLowerCase();
      const owner = await makeOwner(name);
      const record = await attempt(name, (kube) => kube.delete(owner, { propagationPolicy }));
      expect(record).toMatchObject({ outcome: "done" });
      expect((await find(owner))?.metadata.finalizers).toContain(finalizer);
      const type = await harness.client.resolveType(owner.apiVersion, owner.kind);
      await harness.client.mutate(type, place(name), (draft) => {
        delete draft.metadata.finalizers;
      });
    });
  });

  describe("status", () => {
    const makePlain = (name: string) =>
      harness.client.create(ConfigMap, { metadata: { namespace, name }, data: {} });

    test.each(["status", "scale"] as const)(
      "fails with the fix if the kind has no %s subresource, and does not end as gone",
      async (subresource) => {
        const map = await makePlain(`plain-${subresource}`);
        const record = await attempt(`plain-${subresource}`, (kube) =>
          subresource === "status"
            ? kube.mutateStatus(map, (draft) => void Object.assign(draft.status, { a: 1 }))
            : kube.mutate(map, (draft) => void (draft.data = { a: "1" }), { subresource }),
        );
        expect(record).toMatchObject({
          outcome: "retry",
          error: {
            code: "invalid_request",
            message: expect.stringMatching(
              new RegExp(`ConfigMap has no ${subresource} subresource.*mutate`),
            ),
          },
        });
      },
    );

    test("ends as gone if the object is deleted before its status is written", async () => {
      const record = await attempt("gone", async (kube, { object }) => {
        await harness.client.delete(harness.Widgets, { namespace, name: "gone" });
        await kube.mutateStatus(object, (draft) => void (draft.status["a"] = 1));
      });
      expect(record).toMatchObject({ outcome: "gone" });
    });

    test("rejects a change of the status by mutate, which the server would drop", async () => {
      const record = await attempt("by-mutate", (kube, { object }) =>
        kube.mutate(object, (draft) => void (draft.status = { a: 1 })),
      );
      expect(record).toMatchObject({
        outcome: "retry",
        writes: [],
        error: {
          code: "invalid_draft",
          message: expect.stringMatching(/\/status.*use mutateStatus/),
        },
      });
    });

    test("mutate writes the status of a kind without the subresource", async () => {
      const group = "plain.writes.test.konverge.dev";
      const Plain = defineResource({ group, version: "v1", kind: "Plain", spec: z.object({}) });
      const crd = Plain.crd();
      const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
      const [version] = crd.spec["versions"] as JsonObject[];
      Object.assign(version ?? {}, { schema: { openAPIV3Schema: open } });
      await harness.client.create(CustomResourceDefinition, crd);
      await until("it is served", () => isServed(harness.client, Plain));
      const plain = await harness.client.create(Plain, {
        metadata: { namespace, name: "plain" },
        spec: {},
      });
      const record = await attempt("without-subresource", (kube) =>
        kube.mutate(plain, (draft) => void Object.assign(draft, { status: { a: 1 } })),
      );
      expect(record).toMatchObject({ outcome: "done" });
      expect(await harness.client.get(Plain, { namespace, name: "plain" })).toMatchObject({
        status: { a: 1 },
      });
      await harness.client.delete(CustomResourceDefinition, crd.metadata);
    });
  });

  describe("a field that the schema does not have", () => {
    const makeMap = (name: string) =>
      harness.client.create(ConfigMap, { metadata: { namespace, name }, data: {} });
    const odd = { odd: "1" };

    test.each([
      {
        what: "mutate",
        act: (kube: AttemptKube, map: ConfigMapObject) =>
          kube.mutate(map, (draft) => void Object.assign(draft, odd)),
      },
      {
        what: "mutate with strategy fields",
        act: (kube: AttemptKube, map: ConfigMapObject) =>
          kube.mutate(map, (draft) => void Object.assign(draft, odd), { strategy: "fields" }),
      },
      {
        what: "replace",
        act: (kube: AttemptKube, map: ConfigMapObject) => kube.replace({ ...map, ...odd }),
      },
      {
        what: "create",
        act: (kube: AttemptKube, { metadata }: ConfigMapObject) =>
          kube.create(ConfigMap, { name: `${metadata.name}-child`, ...odd }),
      },
    ])("rejects $what and names it", async ({ what, act }) => {
      const name = `odd-${what.replaceAll(" ", "-")}`;
      const map = await makeMap(name);
      const record = await attempt(name, (kube) => act(kube, map));
      expect(record).toMatchObject({
        outcome: "rejected",
        writes: [],
        error: {
          code: "kube_api",
          message: expect.stringMatching(/: unknown field "odd"; correct the field.*$/),
        },
      });
    });

    test("rejects it in a status, instead of writing it in every attempt", async () => {
      const group = "strict.writes.test.konverge.dev";
      const Strict = defineResource({
        group,
        version: "v1",
        kind: "Strict",
        spec: z.object({}),
        status: z.object({ ready: z.number() }),
      });
      await harness.client.create(CustomResourceDefinition, Strict.crd());
      await until("it is served", () => isServed(harness.client, Strict));
      const strict = await harness.client.create(Strict, {
        metadata: { namespace, name: "strict" },
        spec: {},
      });
      const record = await attempt("strict", (kube) =>
        kube.mutateStatus(strict, (draft) => void Object.assign(draft.status, { redy: 1 })),
      );
      expect(record).toMatchObject({
        outcome: "rejected",
        error: { message: expect.stringContaining('unknown field "status.redy"') },
      });
      await harness.client.delete(CustomResourceDefinition, Strict.crd().metadata);
    });
  });

  describe("apply", () => {
    const find = (name: string) => harness.client.get(ConfigMap, { namespace, name });
    const takeOver = async (name: string) => {
      await harness.client
        .scoped({ fieldManager: "kubectl-set" })
        .apply(
          ConfigMap,
          { metadata: { namespace, name }, data: { image: "foreign" } },
          { force: true },
        );
    };

    test.each([
      {
        what: "a draft as for create",
        intentOf: (owner: Widget, name: string) => ({
          name,
          ownedBy: owner,
          labels: { app: "shop" },
          data: { image: "ours" },
        }),
      },
      {
        what: "a manifest with the controller reference",
        intentOf: (owner: Widget, name: string) => {
          const manifest = { metadata: { name, namespace }, data: { image: "ours" } };
          setControllerReference(manifest, owner);
          return manifest;
        },
      },
    ])("a child gets its fields back from another manager, with $what", async ({ intentOf }) => {
      const name = `child-${crypto.randomUUID()}`;
      const { queue, key, records } = await harness.start({
        backoff: eager,
        reconcile: async ({ object, kube }) => {
          const applied = await kube.apply(ConfigMap, intentOf(object, name));
          expect(ownerOf(applied)?.uid).toBe(object.metadata.uid);
        },
      });
      await harness.make(name);
      await until("it is created", async () => (await records(name)).length > 0);
      await takeOver(name);
      await queue.request(key(name), { kind: "http" }, { class: "interactive" });
      await until("it has its field back", async () => {
        return (await find(name)).data?.["image"] === "ours";
      });
      expect((await records(name)).map(({ parsed }) => parsed.outcome)).not.toContain("rejected");
    });

    test.each([
      { what: "an object without owner", isOwned: false, how: {} },
      { what: "a child with force: false", isOwned: true, how: { force: false } },
    ])("names owners and fix for fields of others in $what", async ({ isOwned, how }) => {
      const name = `shared-${crypto.randomUUID()}`;
      await takeOver(name);
      const record = await attempt(name, (kube, { object }) => {
        const intent = { name, data: { image: "ours" }, ...(isOwned ? { ownedBy: object } : {}) };
        return kube.apply(ConfigMap, intent, how);
      });
      expect(record).toMatchObject({
        outcome: "rejected",
        error: {
          code: "field_conflict",
          message: expect.stringMatching(/"kubectl-set" owns data\.image; .*force: true/),
        },
        conflicts: [{ name }],
      });
    });

    test("uses the reconciled object's namespace, for a draft and for a manifest", async () => {
      const record = await attempt("placed", async (kube) => {
        await kube.apply(ConfigMap, { name: "placed-draft", data: { a: "1" } });
        await kube.apply(ConfigMap, { metadata: { name: "placed-manifest" }, data: { a: "1" } });
      });
      expect(record).toMatchObject({ outcome: "done" });
      for (const name of ["placed-draft", "placed-manifest"]) {
        expect((await find(name)).data).toEqual({ a: "1" });
      }
    });

    test("applies only the fields of the manager that is named, also to the status", async () => {
      const record = await attempt("managers", async (kube, { object }) => {
        const { name } = object.metadata;
        const part = { metadata: { name }, spec: { replicas: 3 } };
        await kube.apply(harness.Widgets, part, { fieldManager: "konverge/replicas" });
        await kube.apply(
          harness.Widgets,
          { metadata: { name }, status: { ready: 1 } },
          { subresource: "status" },
        );
        await expect(
          kube.apply(harness.Widgets, { metadata: { name } }, { uid: "another" }),
        ).rejects.toThrow(/uid/i);
      });
      expect(record).toMatchObject({
        outcome: "done",
        writes: [
          { verb: "apply", fieldManager: "konverge/replicas" },
          { verb: "apply", subresource: "status" },
        ],
      });
      const object = await harness.client.get(harness.Widgets, { namespace, name: "managers" });
      expect(object).toMatchObject({ spec: { size: 1, replicas: 3 }, status: { ready: 1 } });
      expect(object.metadata.managedFields).toContainEqual(
        expect.objectContaining({ manager: "konverge/replicas", operation: "Apply" }),
      );
    });
  });

  describe("patch", () => {
    const makeMap = (name: string) =>
      harness.client.create(ConfigMap, { metadata: { namespace, name }, data: { n: "0" } });
    const PATCHES = [
      { type: "merge", body: { data: { n: "1" } } },
      { type: "strategic", body: { data: { n: "1" } } },
      { type: "json", body: [{ op: "replace", path: "/data/n", value: "1" }] },
      { type: "apply", body: { data: { n: "1" } }, force: true },
    ] as const;

    test.each(PATCHES)("writes a $type patch of an object that was read", async (how) => {
      const { body, ...options } = how;
      const name = `patched-${how.type}`;
      await makeMap(name);
      const record = await attempt(name, async (kube) => {
        const map = await kube.get(ConfigMap, name);
        expect((await kube.patch(map, body, options)).data).toEqual({ n: "1" });
      });
      expect(record).toMatchObject({
        outcome: "done",
        writes: [{ verb: how.type === "apply" ? "apply" : "patch", resource: "configmaps", name }],
      });
    });

    test.each(PATCHES.slice(0, 3))(
      "rejects a $type patch of an outdated object, and records the competing writer",
      async ({ type, body }) => {
        const name = `raced-${type}`;
        await makeMap(name);
        let code: unknown;
        const record = await attempt(name, async (kube) => {
          // An event of the watch can be delivered twice. The rival writes only during the first attempt.
          if (code !== undefined) return;
          const map = await kube.get(ConfigMap, name);
          await harness.client
            .scoped({ fieldManager: "rival" })
            .mutate(ConfigMap, { namespace, name }, (draft) => void (draft.data = { n: "7" }));
          await kube.patch(map, body, { type }).catch((error: unknown) => {
            code = isConflict(error);
          });
        });
        expect(code).toBe(true);
        expect(record).toMatchObject({
          outcome: "done",
          writes: [],
          conflicts: [{ name, competingWriters: [{ manager: "rival", paths: ["data.n"] }] }],
        });
        const kept = await harness.client.get(ConfigMap, { namespace, name });
        expect(kept.data).toEqual({ n: "7" });
      },
    );

    test("requires an object that was read, or a precondition in the patch (P3)", async () => {
      await makeMap("unread");
      const unread = { type: ConfigMap, name: "unread" };
      const record = await attempt("unread", async (kube) => {
        for (const { type, body } of PATCHES.slice(0, 3)) {
          await expect(kube.patch(unread, body, { type })).rejects.toMatchObject({
            code: "invalid_request",
          });
        }
        const check = { op: "test", path: "/data/n", value: "0" };
        await kube.patch(unread, [check, ...PATCHES[2].body], { type: "json" });
      });
      expect(record).toMatchObject({ outcome: "done", writes: [{ name: "unread" }] });
    });

    test("keeps values of a patched Secret out of the record", async () => {
      const name = "patched-secret";
      await harness.client.create(Secret, { metadata: { namespace, name } });
      const value = Buffer.from("canary-canary").toString("base64");
      const record = await attempt(name, async (kube) => {
        const secret = await kube.get(Secret, name);
        await kube.patch(secret, [{ op: "add", path: "/data", value: { a: value } }], {
          type: "json",
        });
        throw new Error(`cannot use canary-canary, ${value}`);
      });
      expect(record).toMatchObject({ writes: [{ resource: "secrets", name }] });
      expect(JSON.stringify(record)).not.toContain("canary-canary");
      expect(JSON.stringify(record)).not.toContain(value);
    });
  });

  describe("createOrUpdate", () => {
    test("creates, updates or leaves the object, owned by the reconciled one", async () => {
      const name = "upserted";
      const kinds: string[] = [];
      const record = await attempt(name, async (kube, { object }) => {
        for (const n of ["1", "1", "2"]) {
          const { kind, object: map } = await kube.createOrUpdate(
            ConfigMap,
            name,
            (draft) => void (draft.data = { n }),
            { ownedBy: object },
          );
          kinds.push(kind);
          expect(map.data).toEqual({ n });
          expect(ownerOf(map)?.uid).toBe(object.metadata.uid);
        }
        await expect(
          kube.createOrUpdate(ConfigMap, "never", async () => {
            await kube.mutate(object, () => undefined);
          }),
        ).rejects.toMatchObject({ code: "nested_mutate" });
      });
      expect(kinds).toEqual(["created", "unchanged", "updated"]);
      expect(record).toMatchObject({
        outcome: "done",
        writes: [{ verb: "create" }, { verb: "patch", patch: { data: { n: "2" } } }],
      });
    });

    test("makes each change once if several attempts create the object at once", async () => {
      const counted = new Set<string>();
      const { records } = await harness.start({
        backoff: eager,
        concurrency: 8,
        reconcile: async ({ object, kube }) => {
          // An object may be requested twice.
          if (counted.has(object.metadata.name)) return;
          await kube.createOrUpdate(ConfigMap, "raced-upsert", (draft) => {
            draft.data = { n: String(Number(draft.data?.["n"] ?? 0) + 1) };
          });
          counted.add(object.metadata.name);
        },
      });
      const names = Array.from({ length: 8 }, (_, n) => `upsert-${n}`);
      await Promise.all(names.map((name) => harness.make(name)));
      for (const name of names) {
        await until("it is done", async () =>
          (await records(name)).some(({ parsed }) => parsed.outcome === "done"),
        );
      }
      const { data } = await harness.client.get(ConfigMap, { namespace, name: "raced-upsert" });
      expect(data).toEqual({ n: "8" });
    });
  });

  test("a dry run of any write stores nothing and is no write of the attempt", async () => {
    const name = "dry";
    const map = await harness.client.create(ConfigMap, {
      metadata: { namespace, name, labels: { dry: "1" } },
      data: { n: "0" },
    });
    const dryRun = true;
    const set = (draft: ConfigMapObject) => void (draft.data = { n: "1" });
    const record = await attempt(name, async (kube) => {
      const changed = [
        await kube.apply(ConfigMap, { name, data: { n: "1" } }, { dryRun, force: true }),
        await kube.patch(map, { data: { n: "1" } }, { type: "merge", dryRun }),
        await kube.replace({ ...map, data: { n: "1" } }, { dryRun }),
        await kube.mutate(map, set, { dryRun }),
        (await kube.createOrUpdate(ConfigMap, name, set, { dryRun })).object,
        (await kube.createOrUpdate(ConfigMap, "dry-new", set, { dryRun })).object,
        await kube.create(ConfigMap, { name: "dry-new", data: { n: "1" } }, { dryRun }),
      ];
      for (const { data } of changed) expect(data).toEqual({ n: "1" });
      await kube.delete(map, { dryRun });
      await kube.deleteCollection(ConfigMap, { labelSelector: "dry=1", dryRun });
      // The result of a dry run is no base of a write.
      expect((await kube.mutate(changed[3] ?? map, () => undefined)).data).toEqual({ n: "0" });
    });
    expect(record).toMatchObject({ outcome: "done", writes: [] });
    expect(await harness.client.get(ConfigMap, { namespace, name })).toEqual(map);
    const created = { namespace, name: "dry-new" };
    expect(await harness.client.get(ConfigMap, created).catch(ignoreNotFound)).toBeUndefined();
  });

  test("reads pages, and deletes what a selector matches", async () => {
    for (let n = 0; n < 5; n += 1) {
      const metadata = { namespace, name: `paged-${n}`, labels: { paged: `${n % 2}`, all: "1" } };
      await harness.client.create(ConfigMap, { metadata });
    }
    const sizes: number[] = [];
    const record = await attempt("paged", async (kube) => {
      const pages = kube.pages(ConfigMap, { labelSelector: "all=1", limit: 2 });
      for await (const page of pages) sizes.push(page.length);
      const fieldSelector = "metadata.name=paged-1";
      expect(await kube.list(ConfigMap, { fieldSelector })).toHaveLength(1);
      await expect(kube.deleteCollection(ConfigMap, {})).rejects.toMatchObject({
        code: "invalid_request",
        message: expect.stringContaining("all: true"),
      });
      expect(await kube.deleteCollection(ConfigMap, { labelSelector: "paged=0" })).toBe(3);
      expect(await kube.list(ConfigMap, { labelSelector: "all=1" })).toHaveLength(2);
      await kube.delete({ type: ConfigMap, name: "paged-1" });
      await expect(
        kube.delete({ type: ConfigMap, name: "paged-3" }, { uid: "another" }),
      ).rejects.toSatisfy(isConflict);
    });
    expect(sizes).toEqual([2, 2, 1]);
    const deleted = [0, 2, 4, 1].map((n) => ({ verb: "delete", name: `paged-${n}` }));
    expect(record).toMatchObject({ outcome: "done", writes: deleted });
  });

  test("scales, evicts and sends other requests, all in the record", async () => {
    const labels = { app: "scaled" };
    const containers = [{ name: "a", image: "a" }];
    const metadata = { namespace, name: "scaled" };
    await harness.client.create(Deployment, {
      metadata,
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
      },
    });
    const pod = await harness.client.create(Pod, {
      metadata: { namespace, name: "evicted" },
      spec: { containers },
    });
    const password = Buffer.from("canary-canary").toString("base64");
    const isScaled = (object: ApiObject) => object.metadata.name === "scaled";
    const act = async (kube: AttemptKube) => {
      const scaled = { type: Deployment, name: "scaled" };
      const listed = async () => (await kube.list(Deployment)).filter(isScaled);
      expect(await listed()).toHaveLength(1);
      expect((await kube.scale(scaled, 3)).spec?.replicas).toBe(3);
      // The scale is not the Deployment, although it has its name and uid.
      expect((await listed()).map(({ kind }) => kind)).toEqual(["Deployment"]);
      expect((await kube.readScale(scaled)).spec?.replicas).toBe(3);
      await expect(kube.scale(scaled, -1)).rejects.toMatchObject({ code: "invalid_request" });
      await kube.evict(pod, { gracePeriodSeconds: 0 });
      await kube.evict(pod);
      await expect(kube.evict(scaled)).rejects.toMatchObject({ code: "invalid_request" });
      const path = `/api/v1/namespaces/${namespace}/secrets`;
      const { body } = await kube.raw({
        method: "POST",
        path,
        body: { metadata: { name: "by-raw" }, data: { password } },
      });
      expect(body).toMatchObject({ kind: "Secret" });
      await kube.raw({ method: "GET", path: "/version" });
      throw new Error(`cannot log in with canary-canary or ${password}`);
    };
    const record = await attempt("raw", act, [Deployment]);
    expect(record).toMatchObject({
      outcome: "retry",
      writes: [
        { verb: "patch", subresource: "scale", resource: "deployments.apps" },
        { verb: "create", subresource: "eviction", name: "evicted" },
        { verb: "create", resource: "secrets", name: "by-raw" },
      ],
    });
    expect(JSON.stringify(record)).not.toMatch(new RegExp(`canary-canary|${password}`));
  });

  test("records events in series, without secrets and without failing the handler", async () => {
    const value = "canary-canary";
    const secret = await harness.client.create(Secret, {
      metadata: { namespace, name: "told" },
      data: { value: Buffer.from(value).toString("base64") },
    });
    // An event of the watch can be delivered twice; the second attempt continues the series.
    let attempts = 0;
    const record = await attempt("told", async (kube, { object }) => {
      attempts += 1;
      await kube.get(Secret, secret.metadata.name);
      const event = { type: "Normal", reason: "Told", message: `uses ${value}` } as const;
      for (let n = 0; n < 5; n += 1) await kube.event(object, event);
      await kube.event(object, { ...event, reason: "" });
      await kube.event({ ...object, kind: "Nonsense" }, event);
    });
    expect(record).toMatchObject({
      outcome: "done",
      writes: [],
      log: [{ level: "warn", message: "event not recorded" }],
    });
    const { items } = await harness.client.list(Event, { namespace });
    const told = items.filter(({ reason }) => reason === "Told");
    expect(told).toMatchObject([
      {
        type: "Normal",
        action: "Reconcile",
        message: "uses (redacted)",
        involvedObject: { kind: "Widget", name: "told" },
        reportingComponent: expect.stringMatching(/^konverge\//),
        series: { count: expect.any(Number) },
      },
    ]);
    // The count is written each time it has doubled, and at intervals.
    const count = told[0]?.series?.count ?? 0;
    expect(count).toBeGreaterThan((attempts * 5) / 2);
    expect(count).toBeLessThanOrEqual(attempts * 5);
  });
});
