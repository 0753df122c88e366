import {
  mutationListSchema,
  mutationResultsSchema,
  mutationSchema,
  type MutationDetail,
} from "@konverge/contracts";
import { parseJson } from "@konverge/core";
import { openMutations, type OpenKind } from "@konverge/mutations";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { announceOpenKinds, PLANET, WIDGET } from "./announce-open-kinds.ts";
import { problemIn, useApi, type Call, type Sent } from "./api-harness.ts";

const harness = useApi();
const GADGET: OpenKind = {
  ...WIDGET,
  kind: "Gadget",
  resource: "gadgets",
  paths: ["/spec/size", "/metadata/labels"],
};
const VAULT: OpenKind = { ...WIDGET, kind: "Vault", resource: "vaults", sensitive: true };
const CORE: OpenKind = { ...WIDGET, kind: "Core", resource: "cores", role: "admin" };

beforeEach(() => announceOpenKinds(harness.queues, [WIDGET, GADGET, VAULT, CORE, PLANET]));

const set = (path: string, value: unknown = 1) => ({ kind: "set", path, value });
const widget = (fields: object = {}) => ({
  kind: "Widget",
  namespace: "demo",
  name: "blue",
  changes: [set("/spec/size")],
  ...fields,
});

const submit = (call: Call, body: unknown, sent: Partial<Sent> = {}) =>
  call("/v1/mutations", { body, ...sent });
const read = async (response: Response): Promise<MutationDetail> =>
  mutationSchema.parse(await response.json());
const at = ({ id }: Pick<MutationDetail, "id">) => `/v1/mutations/${encodeURIComponent(id)}`;

test("a mutation is accepted, read, listed and cancelled while it waits", async () => {
  const call = harness.serve();
  const response = await submit(call, widget({ id: "order-7", deadline: "1h" }));
  expect(response.status).toBe(202);
  const accepted = await read(response);
  expect(accepted).toMatchObject({
    id: "default/order-7",
    state: "waiting",
    kind: "Widget",
    apiVersion: "demo.konverge.dev/v1",
    changes: [set("/spec/size")],
    class: "interactive",
    by: "http",
  });
  expect(response.headers.get("location")).toBe("/v1/mutations/default%2Forder-7");
  expect(Date.parse(accepted.expiresAt ?? "") - Date.parse(accepted.createdAt)).toBe(3_600_000);
  expect(await read(await call(at(accepted)))).toEqual(accepted);
  const cancelled = await read(await call(at(accepted), { method: "DELETE" }));
  expect(cancelled).toMatchObject({ state: "cancelled" });
  // A repeated cancellation has the same result.
  expect(await read(await call(at(accepted), { method: "DELETE" }))).toEqual(cancelled);
  const { items } = await harness.access.audit.read({ limit: 10 }, () => true);
  expect(items[0]).toMatchObject({
    action: "mutation.cancel",
    cluster: "default",
    controller: "mutations",
    namespace: "demo",
    name: "blue",
    filter: "Widget",
  });
  await until("the submission is in the audit log", async () => {
    const page = await harness.access.audit.read({ limit: 10, action: "mutate" }, () => true);
    return page.items.length === 1 && page.items[0]?.name === "blue";
  });
});

test("lists by object, kind, namespace and state, newest first, in pages", async () => {
  const call = harness.serve();
  const items = [
    widget({ id: "a" }),
    widget({ id: "b", name: "red" }),
    { ...widget({ id: "c" }), kind: "Gadget" },
    { ...widget({ id: "d" }), kind: "Planet", namespace: undefined },
    widget({ id: "e", namespace: "other" }),
  ];
  await call("/v1/mutations/batch", { body: { items } });
  await call("/v1/mutations/default%2Fb", { method: "DELETE" });
  const idsOf = async (query: string) => {
    const ids: string[] = [];
    for (let next: string | undefined = ""; next !== undefined;) {
      const path = `/v1/mutations?limit=2&${query}${next === "" ? "" : `&cursor=${next}`}`;
      const page = mutationListSchema.parse(await (await call(path)).json());
      ids.push(...page.items.map(({ id }) => id.replace("default/", "")));
      next = page.next;
    }
    return ids.join("");
  };
  expect(await idsOf("")).toBe("edcba");
  expect(await idsOf("kind=Widget")).toBe("eba");
  expect(await idsOf("kind=Widget&namespace=demo")).toBe("ba");
  expect(await idsOf("kind=Widget&namespace=demo&name=blue")).toBe("a");
  expect(await idsOf("kind=Planet&name=blue")).toBe("d");
  expect(await idsOf("namespace=_")).toBe("d");
  expect(await idsOf("state=cancelled")).toBe("b");
});

test("a repeated request is one mutation, with an ID, an Idempotency-Key or both", async () => {
  const call = harness.serve();
  const first = await read(await submit(call, widget({ id: "x" })));
  expect(await read(await submit(call, widget({ id: "x" })))).toEqual(first);
  const other = await problemIn(await submit(call, widget({ id: "x", name: "red" })));
  expect(other).toMatchObject({ status: 409, code: "mutation_mismatch" });
  const headers = { "idempotency-key": "k" };
  const once = await read(await submit(call, widget(), { headers }));
  expect(await read(await submit(call, widget(), { headers }))).toEqual(once);
  // The process that stored the mutation died before it stored the response.
  const { redis, prefix } = harness.queues;
  await redis.del(await redis.keys(`${prefix}:{answers}/answer/*`));
  expect((await read(await submit(call, widget(), { headers }))).id).toBe(once.id);
});

test.each<[object, string, number, string]>([
  [{ kind: "Deployment" }, "kind_not_open", 403, "add it to mutations.kinds"],
  [{ apiVersion: "demo.konverge.dev/v2" }, "kind_not_open", 403, "open: Core (demo."],
  [{ namespace: undefined }, "invalid_request", 422, "/namespace is required"],
  [{ kind: "Planet" }, "invalid_request", 422, "/namespace is not allowed"],
  [{ cluster: "nowhere" }, "not_found", 404, 'cluster "nowhere" not found'],
  [{ kind: "Gadget", changes: [set("/spec/color")] }, "invalid_request", 422, "open: /spec/size"],
  [{ changes: [set("/metadata/uid")] }, "invalid_request", 422, "/metadata/uid identifies"],
  [{ changes: [set("/status/ready")] }, "invalid_request", 422, 'add subresource "status"'],
  [{ create: { metadata: { name: "red" } } }, "invalid_request", 422, 'must be "blue"'],
  [
    { changes: [{ kind: "apply", fieldManager: "ci", object: { kind: "Gadget" } }] },
    "invalid_request",
    422,
    '/changes/0/object/kind must be "Widget"',
  ],
])("refuses %j with %s", async (fields, code, status, text) => {
  const call = harness.serve();
  const problem = await problemIn(await submit(call, { ...widget(), ...fields }));
  expect(problem).toMatchObject({ code, status });
  expect(problem.detail).toContain(text);
});

test("a batch has one result per item, also if some are refused", async () => {
  const call = harness.serve();
  const items = [
    widget({ id: "a" }),
    { ...widget(), kind: "Secret" },
    widget({ id: "b", cluster: "nowhere" }),
    widget({ id: "a", name: "red" }),
    widget({ id: "c" }),
  ];
  const response = await call("/v1/mutations/batch", { body: { items } });
  expect(response.status).toBe(202);
  const results = mutationResultsSchema.parse(await response.json());
  expect(results).toMatchObject({
    accepted: 2,
    items: [
      { id: "default/a", state: "waiting" },
      { error: { code: "kind_not_open" } },
      { error: { code: "not_found" } },
      { error: { code: "mutation_mismatch" } },
      { id: "default/c", state: "waiting" },
    ],
  });
});

test("tokens are limited by role, class, kind, field and namespace", async () => {
  const call = harness.serve({ isLoopback: false });
  const operator = { role: "operator" } as const;
  const tokens = {
    viewer: await harness.token("viewer"),
    operator: await harness.token("operator", operator),
    size: await harness.token("size", { ...operator, scope: { kinds: ["Widget:/spec/size"] } }),
    gadgets: await harness.token("gadgets", { ...operator, scope: { kinds: ["Gadget"] } }),
    other: await harness.token("other", { ...operator, scope: { namespaces: ["other"] } }),
    slow: await harness.token("slow", { ...operator, classes: ["background"] }),
    roller: await harness.token("roller", { ...operator, scope: { controllers: ["node-pool"] } }),
  };
  const codeOf = async (who: keyof typeof tokens, body: object) => {
    const response = await submit(call, body, { token: tokens[who] });
    return response.ok ? "ok" : (await problemIn(response)).code;
  };
  expect(await codeOf("viewer", widget())).toBe("forbidden");
  expect(await codeOf("operator", widget())).toBe("ok");
  expect(await codeOf("operator", { ...widget(), kind: "Core" })).toBe("forbidden");
  expect(await codeOf("size", widget())).toBe("ok");
  expect(await codeOf("size", widget({ changes: [set("/spec/color")] }))).toBe("invalid_request");
  expect(await codeOf("gadgets", widget())).toBe("forbidden");
  expect(await codeOf("other", widget())).toBe("forbidden");
  expect(await codeOf("roller", widget())).toBe("forbidden");
  expect(await codeOf("slow", widget({ class: "interactive" }))).toBe("forbidden");
  expect((await read(await submit(call, widget(), { token: tokens.slow }))).class).toBe(
    "background",
  );
  const seen = async (who: keyof typeof tokens) => {
    const response = await call("/v1/mutations", { token: tokens[who] });
    return response.ok ? mutationListSchema.parse(await response.json()).items.length : "refused";
  };
  expect(await seen("viewer")).toBe(3);
  expect(await seen("gadgets")).toBe(0);
  expect(await seen("other")).toBe(0);
  expect(await seen("roller")).toBe("refused");
});

test("values of sensitive kinds are in no response", async () => {
  const call = harness.serve();
  const changes = [
    set("/data/password", "hunter2"),
    { kind: "merge", patch: { data: { password: "hunter2" } } },
  ];
  const vault = { ...widget(), kind: "Vault", changes };
  const response = await submit(call, vault);
  const text = await response.clone().text();
  const { id } = await read(response);
  expect(text).not.toContain("hunter2");
  expect(await (await call(at({ id }))).text()).not.toContain("hunter2");
  expect(await (await call("/v1/mutations")).text()).not.toContain("hunter2");
});

test("integers beyond 2^53 keep their digits", async () => {
  const body = widget({ changes: [set("/spec/big", parseJson("9007199254740993"))] });
  const response = await submit(harness.serve(), body);
  expect(response.status).toBe(202);
  expect(await response.text()).toContain('"value":9007199254740993');
});

test("Prefer: wait returns the outcome of a mutation, and of a batch", async () => {
  const call = harness.serve();
  const { prefix, target: redis } = harness.queues;
  const mutations = openMutations({ redis, prefix, cluster: "default" });
  onTestFinished(() => mutations.close());
  const headers = { prefer: "wait=30" };
  const single = submit(call, widget({ id: "one" }), { headers });
  const batch = call("/v1/mutations/batch", {
    body: { items: [widget({ id: "two" }), { ...widget(), kind: "Secret" }] },
    headers,
  });
  await until("both are stored", async () =>
    (await mutations.get(["one", "two"])).every((view) => view !== undefined),
  );
  await Promise.all(["one", "two"].map((id) => mutations.cancel(id, "ada")));
  const response = await single;
  expect(response.status).toBe(200);
  expect(response.headers.get("preference-applied")).toBe("wait=30");
  expect(await read(response)).toMatchObject({ state: "cancelled", error: { code: "cancelled" } });
  const many = await batch;
  expect(many.status).toBe(200);
  expect(mutationResultsSchema.parse(await many.json()).items[0]).toMatchObject({
    id: "default/two",
    state: "cancelled",
  });
  const ended = await problemIn(await call("/v1/mutations/default%2Fnone", { method: "DELETE" }));
  expect(ended).toMatchObject({ code: "not_found" });
});
