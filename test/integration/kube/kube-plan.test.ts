import { isKonvergeError, type JsonObject, type ResourceType } from "@konverge/core";
import { createKubePlan, type CallPlan, type KubeClient, type KubePlan } from "@konverge/kube";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { CoreV1Api } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changesOf } from "../../../libs/engine/src/plan/plan-changes.ts";
import { createAttemptSecrets } from "../../../libs/kube/src/objects/attempt-secrets.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "./kube-servers.ts";

const namespace = `kube-plan-${process.pid}`;
const name = "settings";
const GROUP = "kube-plan.test.konverge.dev";

/** Each way to write, through a client of any scope. */
const WRITES: Readonly<Record<string, (kube: KubeClient) => Promise<unknown>>> = {
  create: (kube) => kube.create(ConfigMap, { metadata: { namespace, name: "new" } }),
  replace: async (kube) =>
    kube.replace(ConfigMap, { ...(await kube.get(ConfigMap, { namespace, name })), data: {} }),
  patch: (kube) =>
    kube.patch(
      ConfigMap,
      { namespace, name },
      { type: "merge", body: { data: { a: "2" } } },
      { unguarded: true },
    ),
  apply: (kube) =>
    kube.apply(ConfigMap, { metadata: { namespace, name }, data: { a: "2" } }, { force: true }),
  delete: (kube) => kube.delete(ConfigMap, { namespace, name }),
  deleteCollection: (kube) => kube.deleteCollection(ConfigMap, { namespace }),
  mutate: (kube) =>
    kube.mutate(ConfigMap, { namespace, name }, (draft) => {
      draft.metadata.labels = { a: "2" };
    }),
  raw: (kube) =>
    kube.raw({
      method: "DELETE",
      path: `/api/v1/namespaces/${namespace}/configmaps/${name}`,
    }),
  "raw with the option in the query of a deletion only": (kube) =>
    kube.raw({
      method: "DELETE",
      path: `/api/v1/namespaces/${namespace}/configmaps/${name}?dryRun=All`,
      body: { apiVersion: "v1", kind: "DeleteOptions" },
    }),
  "raw with another value": (kube) =>
    kube.raw({
      method: "DELETE",
      path: `/api/v1/namespaces/${namespace}/configmaps/${name}?dryRun=`,
    }),
  "raw to a program": (kube) =>
    kube.raw({ method: "POST", path: `/api/v1/namespaces/${namespace}/pods/a/exec?dryRun=All` }),
  "client-node": (kube) => kube.api(CoreV1Api).deleteNamespacedConfigMap({ namespace, name }),
  "an inner scope": (kube) => kube.scoped({ dryRun: false }).delete(ConfigMap, { namespace, name }),
};

/** Writes that have no dry run. */
const REFUSED: Readonly<Record<string, string>> = {
  "raw to a program": "has no dry run",
  "raw with another value": "a plan sends only reads and dry runs",
};

function uidOf(view: JsonObject | undefined): unknown {
  return (view?.["metadata"] as JsonObject | undefined)?.["uid"];
}

describe.each(testServers())("plans on the $name", (target) => {
  let client: KubeClient;
  let close: () => Promise<void>;
  let Widgets: ResourceType<Widget>;
  beforeAll(async () => {
    const server = await target.open();
    client = server.client;
    close = () => server.close();
    Widgets = await installWidgets(client, GROUP);
    await client.create(Namespace, { metadata: { name: namespace } });
    await client.create(ConfigMap, { metadata: { namespace, name }, data: { a: "1" } });
  });
  afterAll(async () => {
    await client.deleteCollection(ConfigMap, { namespace });
    await removeWidgets(client, GROUP);
    await close();
  });
  const objects = async () => (await client.list(ConfigMap, { namespace })).items;

  test.each(Object.entries(WRITES))(
    "the transport rejects %s that a broken plan passes on",
    async (_, write) => {
      const broken: CallPlan = { send: (call, live) => live(call) };
      const before = await objects();
      const thrown: unknown = await write(client.scoped({ plan: broken })).catch(
        (error: unknown) => error,
      );
      expect(thrown).toSatisfy((error) => isKonvergeError(error) && error.code === "not_plannable");
      expect(await objects()).toEqual(before);
    },
  );

  test.each(Object.entries(WRITES))("a plan stores nothing of %s", async (what, write) => {
    const before = await objects();
    const plan = createKubePlan();
    const written = write(client.scoped({ plan }));
    const refusal = REFUSED[what];
    if (refusal === undefined) await written;
    else await expect(written).rejects.toThrow(refusal);
    expect(plan.objects.isRefused).toBe(refusal !== undefined);
    expect(plan.objects.written).toHaveLength(refusal === undefined ? 1 : 0);
    expect(await objects()).toEqual(before);
  });

  const shownOf = (plan: KubePlan) =>
    changesOf(plan, {
      cluster: "other",
      isSensitive: (type) => plan.objects.isSensitive(type),
      secrets: createAttemptSecrets(),
      sinceMs: Date.now(),
    }).map(({ shown }) => shown);

  test("a type that only a call marks as sensitive has no values in the plan", async () => {
    const plan = createKubePlan();
    const kube = client.scoped({ plan });
    const Vault = { ...(await installWidgets(client, `vault.${GROUP}`)), sensitive: true };
    await kube.apply(Vault, { metadata: { namespace, name: "vault" }, spec: { pin: "canary-7" } });
    const path = `/apis/${Vault.group}/${Vault.version}/namespaces/${namespace}/${Vault.resource}/vault`;
    const body = { spec: { other: "canary-8" } };
    await kube.raw({ method: "PATCH", path, body, contentType: "application/merge-patch+json" });
    const shown = JSON.stringify(shownOf(plan));
    expect(shown).toContain("pin");
    expect(shown).not.toContain("canary");
    await removeWidgets(client, Vault.group);
  });

  test.each(["patch", "replace", "status", "delete"] as const)(
    "after a foreign change, a later planned %s is planned on the new version",
    async (verb) => {
      const metadata = { namespace, name: `foreign-${verb}` };
      await client.create(Widgets, { metadata, spec: { a: 1 }, status: {} });
      const plan = createKubePlan();
      const kube = client.scoped({ plan });
      const merge = (size: number) => ({ type: "merge", body: { spec: { size } } }) as const;
      await kube.patch(Widgets, metadata, merge(1), { unguarded: true });
      const foreign = { type: "merge", body: { spec: { foreign: 1 } } } as const;
      await client.patch(Widgets, metadata, foreign, { unguarded: true });
      const planned = await kube.get(Widgets, metadata);
      if (verb === "patch") await kube.patch(Widgets, metadata, merge(2), { unguarded: true });
      if (verb === "replace") await kube.replace(Widgets, { ...planned, spec: { a: 1, size: 2 } });
      if (verb === "status") {
        const status = { type: "merge", body: { status: { ready: true } } } as const;
        const to = { unguarded: true, subresource: "status" } as const;
        await kube.patch(Widgets, metadata, status, to);
      }
      if (verb === "delete") {
        const { uid = "", resourceVersion = "" } = planned.metadata;
        await kube.delete(Widgets, metadata, { uid, resourceVersion });
      }
      expect(plan.objects.gaps).toContainEqual({
        about: `${Widgets.resource}.${Widgets.group} ${namespace}/foreign-${verb}`,
        reason: "changed while it was planned",
      });
      const [shown] = shownOf(plan);
      if (verb === "delete") expect(shown).toMatchObject({ action: "deleted" });
      else if (verb !== "status") expect(shown?.patch).toEqual({ spec: { size: 2 } });
      // A second write does not conflict: the plan continues from the new version.
      if (verb === "patch") await kube.patch(Widgets, metadata, merge(3), { unguarded: true });
    },
  );

  test("two plans of an unchanged cluster have read and planned the same", async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps?limit=`;
    const service = `/api/v1/namespaces/${namespace}/services`;
    await client.create(ConfigMap, { metadata: { namespace, name: "second" } });
    const plans = [createKubePlan(), createKubePlan()];
    for (const [index, plan] of plans.entries()) {
      const kube = client.scoped({ plan });
      for (let next: string | undefined = ""; next !== undefined;) {
        const { body } = await kube.raw({
          method: "GET",
          path: `${path}${index + 1}&continue=${next}`,
        });
        const { metadata } = body as { readonly metadata: { readonly continue?: string } };
        next = metadata.continue === "" ? undefined : metadata.continue;
      }
      const ports = [{ port: 80 }];
      const spec = { type: "NodePort", ports };
      const made = ["a", "b"].map((each) => ({ metadata: { name: each }, spec }));
      for (const body of index === 0 ? made : made.toReversed()) {
        await kube.raw({ method: "POST", path: service, body });
      }
      await client.create(Widgets, { metadata: { namespace, name: `between-${index}` } });
    }
    const [one, other] = plans.map((plan) => ({
      reads: plan.objects.reads.kept,
      changes: new Map(
        changesOf(plan, {
          cluster: undefined,
          isSensitive: () => false,
          secrets: createAttemptSecrets(),
          sinceMs: Date.now(),
        }).map(({ hashed }) => [String(hashed["name"]), hashed]),
      ),
      uids: new Map(plan.objects.written.map(({ place, view }) => [place.name, uidOf(view)])),
    }));
    expect(one?.reads.length).toBe(1);
    expect(other).toEqual(one);
  });

  test("reads beyond the kept ones are digested, and a changed one is noticed", () => {
    const { objects: planned } = createKubePlan();
    const place = { group: "", version: "v1", kind: "", resource: "configmaps" };
    for (let index = 0; index < 2_100; index += 1) {
      planned.noteRead({ ...place, name: `n-${index}` }, "1");
    }
    expect(planned.reads.kept).toHaveLength(2_000);
    expect(planned.reads.digests).toHaveLength(100);
    planned.noteRead({ ...place, name: "n-2050" }, "1");
    expect(planned.gaps).toEqual([]);
    planned.noteRead({ ...place, name: "n-2050" }, "2");
    expect(planned.gaps).toHaveLength(1);
  });

  test("a PUT that creates its object is shown as created", async () => {
    const plan = createKubePlan();
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/new`;
    const body = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "new", namespace },
      spec: { holderIdentity: "a" },
    };
    await client.scoped({ plan }).raw({ method: "PUT", path, body });
    expect(shownOf(plan)).toMatchObject([{ action: "created", name: "new" }]);
  });

  test("objects are replaced whatever their names are", async () => {
    const plan = createKubePlan();
    const kube = client.scoped({ plan });
    const long = "l".repeat(63);
    for (const each of [namespace, long]) {
      const metadata = { namespace, name: each };
      await client.create(Widgets, { metadata });
      await kube.delete(Widgets, metadata);
      await kube.apply(Widgets, { metadata, spec: { size: 1 } });
      await kube.apply(Widgets, { metadata, spec: { size: 2 } });
    }
    const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const path = `${crds}/${Widgets.resource}.${Widgets.group}`;
    const { body: found } = await client.raw({ method: "GET", path });
    const { metadata, ...content } = found as { readonly metadata: { readonly name: string } };
    await kube.raw({ method: "DELETE", path });
    const body = { ...content, metadata: { name: metadata.name } };
    await kube.raw({ method: "POST", path: crds, body });
    expect(shownOf(plan)).toMatchObject([
      { action: "replaced", name: namespace, patch: { spec: { size: 2 } } },
      { action: "replaced", name: long, patch: { spec: { size: 2 } } },
      { name: metadata.name },
    ]);
    expect(plan.objects.gaps.map(({ reason }) => reason)).toContain(
      "the server has not checked it, because it rejects another name",
    );
  });

  test("a plan names lists that it cannot complete", async () => {
    const plan = createKubePlan();
    const kube = client.scoped({ plan });
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    await kube.raw({ method: "POST", path, body: { metadata: { name: "listed" } } });
    const { body } = await kube.raw({
      method: "GET",
      path: `${path}?fieldSelector=type%3DOpaque`,
    });
    expect((body as { readonly items: unknown[] }).items).toHaveLength(1);
    const about = "list of secrets";
    const reason =
      'the field selector "type=Opaque" was evaluated on the planned objects without the server';
    expect(plan.objects.gaps).toEqual([{ about, reason }]);
  });

  test("a plan keeps a bounded size of objects to compare with", async () => {
    const plan = createKubePlan();
    const { objects: planned } = plan;
    const place = { group: "", version: "v1", kind: "", resource: "configmaps" };
    const large = { data: {} };
    planned.noteSeen({ ...place, name: "first" }, large, 40_000_000);
    planned.noteSeen({ ...place, name: "second" }, large, 40_000_000);
    expect(planned.seen({ ...place, name: "first" })).toBeUndefined();
    expect(planned.seen({ ...place, name: "second" })).toBe(large);
  });

  test("a call that a plan refuses is reported although its caller catches the error", async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const refused: Readonly<Record<string, (kube: KubeClient) => Promise<unknown>>> = {
      "a create without JSON": (kube) => kube.raw({ method: "POST", path, body: "a: 1" }),
      "a second write without JSON": async (kube) => {
        await kube.apply(ConfigMap, { metadata: { namespace, name } });
        const contentType = "application/apply-patch+yaml";
        return await kube.raw({
          method: "PATCH",
          path: `${path}/${name}?fieldManager=a`,
          body: "a: 1",
          contentType,
        });
      },
      "a proxy": (kube) =>
        kube.raw({ method: "GET", path: `/api/v1/namespaces/${namespace}/pods/a/proxy/x` }),
    };
    for (const [what, call] of Object.entries(refused)) {
      const plan = createKubePlan();
      await expect(call(client.scoped({ plan })), what).rejects.toMatchObject({
        code: "not_plannable",
      });
      expect(plan.objects.isRefused, what).toBe(true);
      expect(plan.objects.gaps, what).toHaveLength(1);
    }
  });

  test("objects of a planned namespace are planned without the server, which the plan lists as a gap", async () => {
    const plan = createKubePlan();
    const kube = client.scoped({ plan });
    const other = `${namespace}-new`;
    await kube.create(Namespace, { metadata: { name: other } });
    await kube.create(ConfigMap, { metadata: { namespace: other, name: "inside" } });
    const { items } = await kube.list(ConfigMap, { namespace: other });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(["inside"]);
    expect(plan.objects.gaps).toMatchObject([{ about: `configmaps ${other}/inside` }]);
    await expect(client.get(Namespace, { name: other })).rejects.toThrow("404");
  });
});
