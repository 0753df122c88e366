import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { inspect } from "node:util";
import type { JsonObject } from "@konverge/core";
import * as fc from "fast-check";
import { loadAll } from "js-yaml";
import { expect, onTestFinished, test } from "vitest";
import { INSTALLATION_VERBS } from "../../../libs/api/src/rights/rights-table.ts";
import { until } from "../../support/until.ts";
import { announce, NODE_POOL } from "../queue/announce.ts";
import { problemIn, useApi } from "./api-harness.ts";
import { mutationOf, operations, requestOf, TARGETS } from "./api-targets.ts";
import {
  ADMIN,
  GROUP,
  HOME,
  own,
  useKubernetesUsers,
  widgets,
  type Rule,
} from "./kubernetes-users.ts";
import { askedFor, isExpected, type Grant } from "./rbac-model.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

console.log(`KONVERGE_TEST_SEED=${seed}`);
const RUNS = isLongRun ? 1_000 : 100;
const harness = useApi({ announces: false });
const users = useKubernetesUsers(harness);
const { serve } = users;

const accounts = (installation: string): Readonly<Record<string, Grant>> => ({
  "no rights": { rules: [] },
  "reads in its namespace": { namespace: HOME, rules: [widgets(["get", "list", "watch"])] },
  "patches in its namespace": { namespace: HOME, rules: [widgets(["patch"])] },
  "reconciles one object": {
    namespace: HOME,
    rules: [widgets(["reconcile"], { resourceNames: [TARGETS.inside.name] })],
  },
  "pauses everywhere": { rules: [widgets(["pause", "list"])] },
  "patches cluster-scoped objects": {
    rules: [widgets(["get", "patch"], { resources: ["planets"] })],
  },
  "signals and pauses a workflow": {
    rules: [own("workflows", "wfblue", ["signal", "pause", "list"])],
  },
  "another installation": {
    rules: [own("installations", "elsewhere", Object.values(INSTALLATION_VERBS))],
  },
  views: { rules: [own("installations", installation, ["get"])] },
  operates: { rules: [own("installations", installation, ["operate"])] },
  administers: { rules: [own("installations", installation, ["administer"])] },
});

test("every operation, target and user is decided by RBAC, as docs/identity.md says", async () => {
  const call = serve();
  for (const target of Object.values(TARGETS)) {
    if (target.cluster !== "default") continue;
    const body = { ...mutationOf(target), id: target.name };
    expect((await call("/v1/mutations", { token: ADMIN, body })).status).toBe(202);
  }
  const wrong: unknown[] = [];
  let allowed = 0;
  for (const [who, user] of Object.entries(accounts(harness.queues.prefix))) {
    const { name } = await users.cluster.account(user.rules, user.namespace);
    const token = await users.cluster.token(name);
    for (const operation of operations) {
      if (!JSON.stringify(operation).includes("Role: ")) continue;
      const requests = Object.entries(TARGETS).flatMap(([where, target]) =>
        [true, false].map((isNarrow) => ({ where, target, isNarrow })),
      );
      await Promise.all(
        requests.map(async ({ where, target, isNarrow }) => {
          const { path: sent, body } = requestOf(operation, target, isNarrow);
          const { method } = operation;
          const response = await call(sent, { token, method, body });
          const isStream = response.headers.get("content-type") === "text/event-stream";
          const text = isStream ? "" : await response.text();
          if (isStream) await response.body?.cancel();
          const { code } = (text === "" ? {} : JSON.parse(text)) as { code?: string };
          const isAllowed =
            response.status !== 401 && code !== "forbidden" && !text.includes("lack the right");
          if (isAllowed) allowed++;
          const asked = askedFor(operation, target, isNarrow);
          if (
            isAllowed ===
              isExpected([user], { operation, asked, installation: harness.queues.prefix }) &&
            response.status < 500
          )
            return;
          wrong.push([
            who,
            operation.operationId,
            where,
            isNarrow,
            response.status,
            text.slice(0, 300),
          ]);
        }),
      );
    }
  }
  expect(wrong).toEqual([]);
  expect(allowed).toBeGreaterThan(500);
});

test("the user is the author, and the error names the missing right", async () => {
  const { name } = await users.cluster.account([widgets(["reconcile"])], HOME);
  const token = await users.cluster.token(name);
  const call = serve();
  const item = { controller: "ctlblue", namespace: HOME, name: "blue" };
  expect((await call("/v1/reconciles", { token, body: item })).status).toBe(202);
  const by = `kubernetes:system:serviceaccount:${HOME}:${name}`;
  expect(await (await call("/v1/whoami", { token })).json()).toMatchObject({
    name: by,
    via: "kubernetes",
    role: "viewer",
  });
  const read = async () => {
    const response = await call("/v1/audit", { token: ADMIN });
    return ((await response.json()) as { items: object[] }).items;
  };
  await until("the request is in the audit log", async () => (await read()).length > 0);
  expect(await read()).toMatchObject([{ by, via: "kubernetes", action: "reconcile" }]);
  const response = await call("/v1/pauses", { token, body: { ...item, by: "ada", reason: "x" } });
  expect(await problemIn(response)).toMatchObject({
    code: "forbidden",
    detail: `Kubernetes user "system:serviceaccount:${HOME}:${name}" needs the right to pause widgets.${GROUP} "blue" in namespace "${HOME}", or operate installations.konverge.dev "${harness.queues.prefix}"; docs/identity.md has an example role`,
  });
});

test("the example roles of docs/identity.md grant the rights that they name", async () => {
  const page = readFileSync("docs/identity.md", "utf8");
  const [, yaml = ""] = /```yaml\n(.*?)```/s.exec(page) ?? [];
  const ownRoles = yaml.replace(
    "resourceNames: [konverge]",
    `resourceNames: [${harness.queues.prefix}]`,
  );
  const [user, operator] = loadAll(ownRoles) as { rules: Rule[] }[];
  const { cluster: at } = users;
  const resource = { group: "cache.example.com", resource: "memcacheds", kind: "Memcached" };
  await announce(harness.queues, [{ ...NODE_POOL, ...resource, name: "memcached" }]);
  const call = serve();
  const tokenWith = async (rules: readonly Rule[], namespace?: string) =>
    await at.token((await at.account(rules, namespace)).name);
  const ofUser = await tokenWith(user?.rules ?? [], HOME);
  const ofOperator = await tokenWith(operator?.rules ?? []);
  const item = { controller: "memcached", namespace: HOME, name: "blue" };
  const reason = { by: "ada", reason: "because" };
  for (const [token, wanted, sent, body] of [
    [ofUser, 202, "/v1/reconciles", item],
    [ofUser, 200, "/v1/pauses", { ...item, ...reason }],
    [ofUser, 200, `/v1/keys?controller=memcached&namespace=${HOME}`, undefined],
    [ofUser, 403, "/v1/keys?controller=memcached&namespace=nsred", undefined],
    [ofUser, 403, "/v1/overview", undefined],
    [ofOperator, 202, "/v1/runs", { workflow: "wfblue", id: "r" }],
    [ofOperator, 200, "/v1/runs/wfblue%2Fdefault%2Fr/pause", reason],
    [ofOperator, 200, "/v1/overview", undefined],
    [ofOperator, 202, "/v1/reconciles", { ...item, namespace: "nsred" }],
    [ofOperator, 403, "/v1/audit", undefined],
  ] as const) {
    expect([sent, (await call(sent, { token, body })).status]).toEqual([sent, wanted]);
  }
});

test("a withdrawn right ends event streams and later requests", async () => {
  const { name, withdraw } = await users.cluster.account([widgets(["watch", "get"])], HOME);
  const token = await users.cluster.token(name);
  const call = serve({ keptMs: 200 });
  const stream = await call(`/v1/events?controller=ctlblue&namespace=${HOME}`, { token });
  expect(stream.status).toBe(200);
  const read = async () => {
    const target = `/v1/objects/default/ctlblue/${HOME}/blue/attempts`;
    return (await call(target, { token })).status;
  };
  expect(await read()).toBe(200);
  await withdraw();
  await until("requests are rejected", async () => (await read()) === 403);
  const reader = stream.body?.getReader();
  await until("the stream ends", async () => (await reader?.read())?.done === true);
});

test("forged, foreign and unknown tokens are rejected", async () => {
  const all = own("installations", harness.queues.prefix, Object.values(INSTALLATION_VERBS));
  const { name } = await users.cluster.account([all]);
  const token = await users.cluster.token(name);
  const call = serve();
  const sendAs = async (bearer: string) =>
    (await call("/v1/audit", { headers: { authorization: `Bearer ${bearer}` } })).status;
  expect(await sendAs(token)).toBe(200);
  const parts = token.split(".");
  const json = (part: number) =>
    JSON.parse(Buffer.from(parts[part] ?? "", "base64url").toString()) as JsonObject;
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const { tokenOf } = users.cluster;
  const foreign = [
    await tokenOf(name, { expirationSeconds: 3_600 }),
    await tokenOf(name, { audiences: ["another"], expirationSeconds: 3_600 }),
    `${encode({ ...json(0), alg: "none" })}.${parts[1]}.`,
    `${parts[0]}.${encode({ ...json(1), exp: 9_999_999_999 })}.${parts[2]}`,
    `${parts[0]}.${encode({ ...json(1), sub: "system:admin" })}.${parts[2]}`,
    `${parts[0]}.${parts[1]}`,
    `${token}.${parts[2]}`,
    token.toUpperCase(),
    "x".repeat(15_000),
  ];
  for (const each of foreign) expect([each.slice(0, 20), await sendAs(each)]).toContain(401);
  const forged = fc.oneof(
    // The last character may have bits that do not count.
    fc
      .tuple(fc.nat(token.length - 3), fc.constantFrom("A", "z", "0", ".", "-"))
      .map(([at, with_]) =>
        token[at] === with_ ? "" : token.slice(0, at) + with_ + token.slice(at + 1),
      ),
    fc.nat(token.length - 1).map((length) => token.slice(0, length)),
    fc.array(fc.base64String(), { minLength: 3, maxLength: 3 }).map((all_) => all_.join(".")),
    fc.string({ unit: fc.integer({ min: 33, max: 126 }).map((n) => String.fromCodePoint(n)) }),
  );
  await fc.assert(
    fc.asyncProperty(forged, async (bearer) => {
      expect(await sendAs(bearer)).toBe(401);
    }),
    { seed, numRuns: RUNS },
  );
  expect(await sendAs(token)).toBe(200);
});

test("rejects requests while the API server is unavailable, without the token in errors", async () => {
  const { name } = await users.cluster.account([]);
  const token = await users.cluster.token(name);
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await until("it listens", () => silent.listening);
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const closed = createServer().listen(0, "127.0.0.1");
  await until("it listens", () => closed.listening);
  const { port: unused } = closed.address() as AddressInfo;
  closed.close();
  const { credentials: good } = users;
  for (const server of [`http://127.0.0.1:${port}`, `http://127.0.0.1:${unused}`]) {
    const errors: unknown[] = [];
    const call = serve({
      credentials: { ...good, server },
      callMs: 800,
      onError: (error) => errors.push(error),
    });
    for (const at of ["/v1/whoami", "/v1/overview", "/metrics"]) {
      const response = await call(at, { token });
      expect(response.headers.get("retry-after")).toBe("1");
      const problem = await problemIn(response);
      expect(problem).toMatchObject({ code: "identity_unavailable", status: 503 });
      expect(JSON.stringify(problem)).not.toContain(token);
    }
    expect(errors).toHaveLength(3);
    expect(inspect(errors, { depth: 20, showHidden: true })).not.toContain(token.slice(-40));
    // Tokens of Konverge do not need the API server.
    expect((await call("/v1/whoami", { token: ADMIN })).status).toBe(200);
  }
});

test("an account without the permission for reviews is reported as unavailable", async () => {
  const { name } = await users.cluster.account([]);
  const errors: unknown[] = [];
  const call = serve({
    credentials: await users.cluster.credentialsOf(name),
    onError: (error) => errors.push(error),
  });
  const token = await users.cluster.token(name);
  expect(await problemIn(await call("/v1/whoami", { token }))).toMatchObject({
    code: "identity_unavailable",
  });
  expect(inspect(errors)).toContain("tokenreviews");
});

test("limits the checks of unknown tokens, and still checks known ones", async () => {
  const { name } = await users.cluster.account([]);
  const token = await users.cluster.token(name);
  const call = serve({ rate: { ratePerSecond: 0.001, burst: 3 } });
  const sendAs = async (bearer: string) => (await call("/v1/whoami", { token: bearer })).status;
  expect(await sendAs(token)).toBe(200);
  for (const n of [1, 2]) expect(await sendAs(`${"x".repeat(20)}${n}`)).toBe(401);
  expect(await sendAs(`${"x".repeat(20)}3`)).toBe(503);
  expect(await sendAs(token)).toBe(200);
});
