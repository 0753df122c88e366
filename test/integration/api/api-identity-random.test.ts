import { createKubernetesReviews } from "@konverge/api";
import * as fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { INSTALLATION_VERBS } from "../../../libs/api/src/rights/rights-table.ts";
import { startTcpProxy } from "../../chaos/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useApi } from "./api-harness.ts";
import { mutationOf, operations, requestOf, TARGETS } from "./api-targets.ts";
import { ADMIN, HOME, NO_LIMIT, own, useKubernetesUsers, widgets } from "./kubernetes-users.ts";
import { askedFor, grants, isExpected, mayShow, onInstallation, type Grant } from "./rbac-model.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

console.log(`KONVERGE_TEST_SEED=${seed}`);
const RUNS = isLongRun ? 30 : 3;
/** A call that is held back fails after this time, in ms. It is only for the state `held`. */
const HELD_MS = 300;

const harness = useApi({ announces: false });
const users = useKubernetesUsers(harness);

const protectedOperations = operations.filter((each) => JSON.stringify(each).includes("Role: "));
const TARGET_NAMES = Object.keys(TARGETS) as (keyof typeof TARGETS)[];
const FOLLOW = protectedOperations.findIndex(({ operationId }) => operationId === "followEvents");
const grantArbitrary = (): fc.Arbitrary<Grant> => {
  const prefix = harness.queues.prefix;
  const verbs = fc.subarray(["get", "list", "watch", "reconcile", "patch", "pause"], {
    minLength: 2,
  });
  const resource = fc.constantFrom("widgets", "widgets", "widgets", "gadgets", "planets");
  const ofObjects = fc
    .record({
      namespace: fc.constantFrom(HOME, HOME, "nsred", undefined),
      rule: fc.tuple(verbs, resource, fc.option(fc.constant([TARGETS.inside.name]), { freq: 1 })),
    })
    .map(({ namespace, rule: [given, plural, names] }): Grant => {
      const rest = { resources: [plural], ...(names === null ? {} : { resourceNames: names }) };
      return { rules: [widgets(given, rest)], ...(namespace === undefined ? {} : { namespace }) };
    });
  const ofInstallation = fc
    .subarray(Object.values(INSTALLATION_VERBS), { minLength: 1 })
    .map((given): Grant => ({ rules: [own("installations", prefix, given)] }));
  const ofWorkflow = fc
    .subarray(["get", "list", "start", "signal", "pause", "cancel"], { minLength: 1 })
    .map((given): Grant => ({ rules: [own("workflows", "wfblue", given)] }));
  return fc.oneof(
    { arbitrary: ofObjects, weight: 4 },
    { arbitrary: ofWorkflow, weight: 1 },
    { arbitrary: ofInstallation, weight: 1 },
  );
};

type Step =
  | { readonly kind: "server"; readonly state: ServerState }
  | { readonly kind: "revoke"; readonly user: number; readonly grant: number }
  | {
      readonly kind: "ask";
      readonly user: number;
      readonly operation: number;
      readonly target: keyof typeof TARGETS;
      readonly isNarrow: boolean;
    };
type ServerState = "up" | "slow" | "down" | "held";

const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("server" as const),
      state: fc.constantFrom<ServerState>("up", "up", "up", "slow", "down", "held"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("revoke" as const),
      user: fc.nat(10),
      grant: fc.nat(10),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      user: fc.nat(10),
      operation: fc.oneof(
        { weight: 9, arbitrary: fc.nat(1_000) },
        { weight: 1, arbitrary: fc.constant(FOLLOW) },
      ),
      target: fc.oneof(
        { weight: 1, arbitrary: fc.constant("inside" as const) },
        { weight: 1, arbitrary: fc.constantFrom(...TARGET_NAMES) },
      ),
      isNarrow: fc.boolean(),
    }),
  },
);

/** A user with several roles, each of which can be withdrawn. */
async function openUser(given: readonly Grant[]) {
  const { cluster } = users;
  const { name } = await cluster.account([]);
  const withdrawals: (() => Promise<unknown>)[] = [];
  for (const { rules, namespace } of given) {
    withdrawals.push(await cluster.grant(name, rules, namespace));
  }
  return { token: await cluster.token(name), grants: [...given], withdrawals };
}
type User = Awaited<ReturnType<typeof openUser>>;

/** Reviews that always reach the API server. */
function openOracle() {
  const reviews = createKubernetesReviews({
    credentials: users.credentials,
    audiences: ["konverge"],
    keptMs: 0,
    rate: NO_LIMIT,
    userRate: NO_LIMIT,
    callMs: 60_000,
    onError: () => undefined,
  });
  /** Waits until the API server and the model agree about the rules of a role. */
  const settle = async (user: User, { namespace, rules }: Grant) => {
    const known = await reviews.authenticate(user.token);
    if (known === undefined) throw new Error("the token is unknown");
    for (const { apiGroups, resources, verbs, resourceNames } of rules) {
      const right = {
        verb: verbs[0] ?? "",
        group: apiGroups[0] ?? "",
        resource: resources[0] ?? "",
        ...(namespace === undefined ? {} : { namespace }),
        ...(resourceNames?.[0] === undefined ? {} : { name: resourceNames[0] }),
      };
      const wanted = user.grants.some((grant) => grants(grant, right));
      await until(
        "the API server knows the roles",
        async () => (await reviews.isAllowed(known, right)) === wanted,
      );
    }
  };
  return { settle, close: () => reviews.close() };
}

test("no response shows or changes anything without the permission of the API server", async () => {
  const { credentials } = users;
  const { port } = new URL(credentials.server);
  const proxy = await startTcpProxy(Number(port));
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const server = credentials.server.replace(port, String(proxy.port));
  const serveWith = (callMs: number) =>
    users.serve({
      credentials: { ...credentials, server },
      callMs,
      keptMs: 0,
      userRate: NO_LIMIT,
      onError: () => undefined,
    });
  const [patient, hasty] = [serveWith(60_000), serveWith(HELD_MS)];
  const oracle = openOracle();
  onTestFinished(() => oracle.close());
  for (const target of Object.values(TARGETS)) {
    if (target.cluster !== "default") continue;
    const body = { ...mutationOf(target), id: target.name };
    expect((await patient("/v1/mutations", { token: ADMIN, body })).status).toBe(202);
  }
  const changes = async () => {
    await harness.access.audit.close();
    return await harness.queues.redis.xlen(`${harness.queues.prefix}:audit`);
  };
  const counted = { allowed: 0, refused: 0, unavailable: 0, streams: 0 };
  const program = fc.tuple(
    fc.array(fc.array(grantArbitrary(), { minLength: 1, maxLength: 4 }), {
      minLength: 2,
      maxLength: 4,
    }),
    fc.array(stepArbitrary, { minLength: 60, maxLength: 120 }),
  );
  await fc.assert(
    fc.asyncProperty(program, async ([allGrants, steps]) => {
      proxy.heal();
      const accounts: User[] = [];
      for (const given of allGrants) accounts.push(await openUser(given));
      for (const user of accounts) {
        for (const grant of user.grants) await oracle.settle(user, grant);
      }
      let state: ServerState = "up";
      const streams: { user: User; isAllowed: () => boolean; ended: Promise<unknown> }[] = [];
      const endStreams = async () => {
        const isOver = state === "down" || state === "held";
        for (const { isAllowed, ended } of streams) if (isOver || !isAllowed()) await ended;
      };
      for (const step of steps) {
        if (step.kind === "server") {
          ({ state } = step);
          proxy.heal();
          if (state === "slow") proxy.delay(5);
          if (state === "down") proxy.cut();
          if (state === "held") proxy.hold();
          await endStreams();
          continue;
        }
        const user = accounts[step.user % accounts.length];
        if (user === undefined) throw new Error("no user");
        if (step.kind === "revoke") {
          const at = user.grants.length === 0 ? -1 : step.grant % user.grants.length;
          const [withdraw] = at < 0 ? [] : user.withdrawals.splice(at, 1);
          const [grant] = at < 0 ? [] : user.grants.splice(at, 1);
          if (withdraw === undefined || grant === undefined) continue;
          await withdraw();
          await oracle.settle(user, grant);
          await endStreams();
          continue;
        }
        const operation = protectedOperations[step.operation % protectedOperations.length];
        if (operation === undefined) throw new Error("no operation");
        const target = TARGETS[step.target];
        const sent = requestOf(operation, target, step.isNarrow);
        const asked = askedFor(operation, target, step.isNarrow);
        const { prefix: installation } = harness.queues;
        const isAllowed = () => isExpected(user.grants, { operation, asked, installation });
        const isReachable = state === "up" || state === "slow";
        const before = await changes();
        const call = state === "held" ? hasty : patient;
        const response = await call(sent.path, {
          token: user.token,
          method: operation.method,
          body: sent.body,
        });
        const what = [operation.operationId, step.target, step.isNarrow, state, user.grants];
        if (response.headers.get("content-type") === "text/event-stream") {
          expect([what, isReachable && isAllowed()]).toEqual([what, true]);
          counted.streams++;
          streams.push({ user, isAllowed, ended: drain(response) });
          continue;
        }
        const text = await response.text();
        const { code } = (text === "" ? {} : JSON.parse(text)) as { readonly code?: string };
        const isRefused =
          response.status === 401 || code === "forbidden" || text.includes("lack the right");
        const found = !isReachable && response.status >= 400 ? "unavailable" : isRefused;
        const expected = isReachable ? !isAllowed() : "unavailable";
        expect([what, text.slice(0, 300), found]).toEqual([what, text.slice(0, 300), expected]);
        if (!isReachable) expect([what, code]).toEqual([what, "identity_unavailable"]);
        if (found === false) counted.allowed++;
        else {
          counted[found === true ? "refused" : "unavailable"]++;
          expect([what, await changes()]).toEqual([what, before]);
        }
        // Names of another target need the right on the whole installation.
        const has = user.grants.some((grant) =>
          grants(grant, onInstallation(operation, installation)),
        );
        if (found === false && has) continue;
        const request = JSON.stringify(sent);
        for (const other of Object.values(TARGETS)) {
          const { name } = other;
          const isOfRequest = request.includes(name) || name === target.name;
          const isForeign = !isOfRequest && !mayShow(user.grants, asked, other);
          expect([what, name, isForeign && text.includes(name)]).toEqual([what, name, false]);
        }
      }
      proxy.cut();
      await Promise.all(streams.map(({ ended }) => ended));
      proxy.heal();
    }),
    { seed, numRuns: RUNS, endOnFailure: true },
  );
  console.log(JSON.stringify(counted));
  expect(Math.min(counted.allowed, counted.refused, counted.unavailable)).toBeGreaterThan(0);
});

/** Resolves when a stream ends. */
async function drain({ body }: Response): Promise<void> {
  const reader = body?.getReader();
  while ((await reader?.read())?.done === false);
}
