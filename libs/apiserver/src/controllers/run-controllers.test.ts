import type { JsonObject } from "@konverge/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createApiServer, type EmbeddedApiServer } from "../server/api-server.ts";

const NAMESPACE = "/api/v1/namespaces/default";
const BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const DEADLINE = { timeout: 60_000 };

let server: EmbeddedApiServer;
beforeEach(async () => {
  server = await createApiServer({ controllers: true });
});
afterEach(() => server.close());

interface Answer {
  readonly code: number;
  readonly body: JsonObject & { metadata: JsonObject; status: JsonObject };
}
async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const response = await fetch(server.url + path, {
    method,
    headers: { "Content-Type": type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { code: response.status, body: (await response.json()) as Answer["body"] };
}
async function create(path: string, body: JsonObject): Promise<Answer["body"]> {
  const { code, body: created } = await send("POST", path, body);
  expect(code, JSON.stringify(created)).toBe(201);
  return created;
}
const maps = `${NAMESPACE}/configmaps`;
const namesOf = (resource: string) =>
  server.objects(resource).map(({ metadata }) => (metadata as { name: string }).name);
/** The ConfigMaps that are left, without those that are being deleted. */
const left = () => namesOf("configmaps").toSorted().join(" ");

/** A ConfigMap with these owners, by name. */
async function owned(name: string, owners: readonly string[] = [], more: JsonObject = {}) {
  const references = [];
  for (const owner of owners) {
    const { metadata } = (await send("GET", `${maps}/${owner}`)).body;
    references.push({
      apiVersion: "v1",
      kind: "ConfigMap",
      name: owner,
      uid: metadata["uid"] ?? "",
      blockOwnerDeletion: true,
    });
  }
  await create(maps, { metadata: { name, ownerReferences: references, ...more } });
}

describe("garbage collection", () => {
  beforeEach(async () => {
    await owned("root");
    await owned("other");
    await owned("child", ["root"]);
    await owned("grandchild", ["child"]);
    await owned("shared", ["root", "other"]);
  });

  test.each(["Background", "Foreground"])("%s deletes what only the owner owns", async (policy) => {
    await send("DELETE", `${maps}/root?propagationPolicy=${policy}`);
    await expect.poll(left, DEADLINE).toBe("other shared");
    const { metadata } = (await send("GET", `${maps}/shared`)).body;
    expect(metadata["ownerReferences"]).toMatchObject([{ name: "other" }]);
  });

  test("Orphan keeps the dependents, without the reference", async () => {
    await send("DELETE", `${maps}/root?propagationPolicy=Orphan`);
    await expect.poll(left, DEADLINE).toBe("child grandchild other shared");
    const { metadata } = (await send("GET", `${maps}/child`)).body;
    expect(metadata["ownerReferences"]).toBeUndefined();
  });

  test("Foreground keeps the owner until its dependents are gone", async () => {
    await owned("held", ["root"], { finalizers: ["test.konverge.dev/hold"] });
    await send("DELETE", `${maps}/root?propagationPolicy=Foreground`);
    await expect.poll(left, DEADLINE).toBe("held other root shared");
    const { metadata } = (await send("GET", `${maps}/root`)).body;
    expect(metadata["finalizers"]).toEqual(["foregroundDeletion"]);
    await send("PATCH", `${maps}/held`, { metadata: { finalizers: null } });
    await expect.poll(left, DEADLINE).toBe("other shared");
  });

  test("an object whose owner never existed, or was created again, is deleted", async () => {
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "other", uid: "another" };
    await create(maps, { metadata: { name: "stale", ownerReferences: [owner] } });
    await expect.poll(left, DEADLINE).toBe("child grandchild other root shared");
  });

  test("an object of an owner of an unknown kind is kept", async () => {
    const owner = { apiVersion: "none.example.com/v1", kind: "None", name: "x", uid: "1" };
    await create(maps, { metadata: { name: "kept", ownerReferences: [owner] } });
    await send("DELETE", `${maps}/root`);
    await expect.poll(left, DEADLINE).toBe("kept other shared");
  });

  test("a Job leaves its Pods, unless the deletion names a policy", async () => {
    const template = {
      spec: { restartPolicy: "Never", containers: [{ name: "a", image: "a" }] },
    };
    const jobs = "/apis/batch/v1/namespaces/default/jobs";
    const make = async (name: string) => {
      const { metadata } = await create(jobs, { metadata: { name }, spec: { template } });
      const uid = metadata["uid"] ?? "";
      const owner = { apiVersion: "batch/v1", kind: "Job", name, uid, controller: true };
      await create(`${NAMESPACE}/pods`, {
        metadata: { name, ownerReferences: [owner] },
        ...template,
      });
    };
    await make("a");
    await make("b");
    await send("DELETE", `${jobs}/a`);
    await send("DELETE", `${jobs}/b?propagationPolicy=Background`);
    await expect.poll(() => namesOf("jobs.batch"), DEADLINE).toEqual([]);
    await expect.poll(() => namesOf("pods"), DEADLINE).toEqual(["a"]);
  });
});

describe("deletions that another program ends in a cluster", () => {
  test("a Pod on a node is removed", async () => {
    const spec = { nodeName: "node", containers: [{ name: "a", image: "a" }] };
    await create(`${NAMESPACE}/pods`, { metadata: { name: "a" }, spec });
    const { body } = await send("DELETE", `${NAMESPACE}/pods/a`);
    expect(body.metadata["deletionGracePeriodSeconds"]).toBe(30);
    await expect.poll(() => namesOf("pods"), DEADLINE).toEqual([]);
  });

  test("a claim is removed once no Pod uses it", async () => {
    const claims = `${NAMESPACE}/persistentvolumeclaims`;
    const resources = { requests: { storage: "1Gi" } };
    await create(claims, {
      metadata: { name: "data" },
      spec: { accessModes: ["ReadWriteOnce"], resources },
    });
    await create(`${NAMESPACE}/pods`, {
      metadata: { name: "user" },
      spec: {
        containers: [{ name: "a", image: "a" }],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
      },
    });
    await send("DELETE", `${claims}/data`);
    // A later change of another object: the claim is still there after it was handled.
    await owned("later");
    expect((await send("GET", `${claims}/data`)).code).toBe(200);
    await send("DELETE", `${NAMESPACE}/pods/user`);
    await expect.poll(() => namesOf("persistentvolumeclaims"), DEADLINE).toEqual([]);
  });

  test("a namespace is removed with its content, once no finalizer holds that", async () => {
    await create("/api/v1/namespaces", { metadata: { name: "team" } });
    const inside = "/api/v1/namespaces/team/configmaps";
    await create(inside, { metadata: { name: "a" } });
    await create(inside, { metadata: { name: "b", finalizers: ["test.konverge.dev/hold"] } });
    await send("DELETE", "/api/v1/namespaces/team");
    await expect.poll(left, DEADLINE).toBe("b");
    expect((await send("GET", "/api/v1/namespaces/team")).code).toBe(200);
    await send("PATCH", `${inside}/b`, { metadata: { finalizers: null } });
    await expect.poll(() => namesOf("namespaces").includes("team"), DEADLINE).toBe(false);
  });
});

describe("PodDisruptionBudgets", () => {
  const labels = { app: "web" };
  const containers = [{ name: "web", image: "web" }];
  const template = { metadata: { labels }, spec: { containers } };
  const pods = `${NAMESPACE}/pods`;
  const status = async () => (await send("GET", `${BUDGETS}/web`)).body.status;
  const isAllowed = async () => (await status())["disruptionsAllowed"];
  const setReady = (name: string, isReady: boolean) =>
    send("PATCH", `${pods}/${name}/status`, {
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: isReady ? "True" : "False" }],
      },
    });
  const makePod = async (name: string, ownerReferences: JsonObject[] = []) => {
    await create(pods, { metadata: { name, labels, ownerReferences }, spec: { containers } });
    await setReady(name, true);
  };
  const evict = (name: string) =>
    send("POST", `${pods}/${name}/eviction`, {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name },
    });
  const makeBudget = (spec: JsonObject) =>
    create(BUDGETS, {
      metadata: { name: "web" },
      spec: { selector: { matchLabels: labels }, ...spec },
    });

  test("minAvailable counts the ready Pods, and evictions stop at it", async () => {
    await makeBudget({ minAvailable: 1 });
    for (const name of ["a", "b", "c"]) await makePod(name);
    await expect.poll(isAllowed, DEADLINE).toBe(2);
    await setReady("c", false);
    await expect.poll(isAllowed, DEADLINE).toBe(1);
    expect((await evict("a")).code).toBe(201);
    await expect.poll(status, DEADLINE).toMatchObject({
      disruptionsAllowed: 0,
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 2,
      conditions: [{ type: "DisruptionAllowed", status: "False", reason: "InsufficientPods" }],
    });
    expect((await evict("b")).code).toBe(429);
    await setReady("c", true);
    await expect.poll(isAllowed, DEADLINE).toBe(1);
    expect((await evict("b")).code).toBe(201);
  });

  test.each([
    { spec: { maxUnavailable: 1 }, expected: { expectedPods: 4, desiredHealthy: 3 } },
    { spec: { maxUnavailable: "30%" }, expected: { expectedPods: 4, desiredHealthy: 2 } },
    { spec: { minAvailable: "30%" }, expected: { expectedPods: 4, desiredHealthy: 2 } },
  ])("$spec counts the replicas of the Deployment", async ({ spec, expected }) => {
    const apps = "/apis/apps/v1/namespaces/default";
    const selector = { matchLabels: labels };
    const web = await create(`${apps}/deployments`, {
      metadata: { name: "web" },
      spec: { replicas: 4, selector, template },
    });
    const reference = (kind: string, { metadata }: Answer["body"]) => ({
      apiVersion: "apps/v1",
      kind,
      name: metadata["name"] ?? "",
      uid: metadata["uid"] ?? "",
      controller: true,
    });
    const set = await create(`${apps}/replicasets`, {
      metadata: { name: "web-1", ownerReferences: [reference("Deployment", web)] },
      spec: { replicas: 3, selector, template },
    });
    await makePod("a", [reference("ReplicaSet", set)]);
    await makeBudget(spec);
    await expect
      .poll(status, DEADLINE)
      .toMatchObject({ ...expected, currentHealthy: 1, disruptionsAllowed: 0 });
  });

  test("maxUnavailable allows nothing for Pods without a controller", async () => {
    await makeBudget({ maxUnavailable: 1 });
    await makePod("a");
    await expect
      .poll(status, DEADLINE)
      .toMatchObject({ expectedPods: 0, currentHealthy: 1, disruptionsAllowed: 0 });
  });
});

test("without the option the server has no controllers, as kube-apiserver alone", async () => {
  await server.close();
  server = await createApiServer();
  await owned("root");
  await owned("child", ["root"]);
  await send("DELETE", `${maps}/root`);
  expect(left()).toBe("child");
});
