import type { GroupRole } from "@konverge/contracts";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { useClientSecret } from "../../support/use-oidc-provider.ts";
import { announce, NODE_POOL } from "../queue/announce.ts";
import { announceOpenKinds, PLANET, WIDGET } from "./announce-open-kinds.ts";
import { useApi, type Sent } from "./api-harness.ts";
import { KINDS, operations, requestOf, TARGETS } from "./api-targets.ts";
import { signInSettings } from "./sign-in-stage.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

console.log(`KONVERGE_TEST_SEED=${seed}`);
const RUNS = isLongRun ? 30 : 3;

const harness = useApi({ announces: false });
const { path: secretPath } = useClientSecret();
const ISSUER = "http://127.0.0.1:1";
const GROUPS = ["one", "two", "three", "four"];
const TARGET_NAMES = Object.keys(TARGETS) as (keyof typeof TARGETS)[];
const protectedOperations = operations.filter((each) => JSON.stringify(each).includes("Role: "));

const part = (...names: readonly string[]) =>
  fc.option(fc.subarray([...names], { minLength: 1 }), { nil: undefined });
const entryArbitrary: fc.Arbitrary<GroupRole> = fc
  .record({
    group: fc.constantFrom(...GROUPS),
    role: fc.constantFrom("viewer", "operator", "operator", "admin"),
    scope: fc.record({
      clusters: part("default", "clusterred"),
      controllers: part("ctlblue", "ctlred", "workflow.wfblue", "mutations"),
      namespaces: part("nsblue", "nsred", "_"),
    }),
  })
  .map((entry) => JSON.parse(JSON.stringify(entry)) as GroupRole);
/** Entries of which the later ones can extend an earlier one: the same role, and another value of one field. */
const rolesArbitrary: fc.Arbitrary<readonly GroupRole[]> = fc
  .tuple(
    fc.array(entryArbitrary, { minLength: 2, maxLength: 4 }),
    fc.array(
      fc.record({
        of: fc.nat(3),
        group: fc.constantFrom(...GROUPS),
        field: fc.constantFrom("clusters", "controllers", "namespaces"),
        other: entryArbitrary,
      }),
      { minLength: 2, maxLength: 4 },
    ),
  )
  .map(([own, extensions]) => [
    ...own,
    ...extensions.flatMap(({ of, group, field, other }) => {
      const extended = own[of % own.length];
      if (extended === undefined) return [];
      const { [field]: _, ...scope } = extended.scope;
      const { [field]: names } = other.scope;
      return [
        { ...extended, group, scope: names === undefined ? scope : { ...scope, [field]: names } },
      ];
    }),
  ]);
const stepArbitrary = fc.record({
  groups: fc.subarray(GROUPS, { minLength: 1 }),
  operation: fc.constantFrom(...protectedOperations),
  target: fc.constantFrom(...TARGET_NAMES),
  isNarrow: fc.boolean(),
});

test("a user may do what its first entry permits, and nothing that no entry permits", async () => {
  const { queues, access } = harness;
  await announce(
    queues,
    Object.entries(KINDS).map(([name, resource]) => ({
      ...NODE_POOL,
      name,
      resource,
      kind: "Thing",
      scope: name === "ctlwide" ? "Cluster" : "Namespaced",
    })),
    ["wfblue", "wfred", "wfwide"].map((name) => ({ name, version: 1 })),
  );
  await announceOpenKinds(queues, [WIDGET, PLANET]);
  const counted = { allowed: 0, refused: 0, joined: 0 };
  let count = 0;
  const program = fc.tuple(
    rolesArbitrary,
    fc.array(stepArbitrary, { minLength: 60, maxLength: 60 }),
  );
  await fc.assert(
    fc.asyncProperty(program, async ([roles, steps]) => {
      const settings = signInSettings(ISSUER, secretPath, { roles });
      const call = harness.serve({
        signIn: { settings, onError: () => expect.unreachable() },
        rate: { ratePerSecond: 1e6, burst: 1e6 },
      });
      const tokens: string[] = [];
      for (const { role, scope } of roles) {
        tokens.push(await harness.token(`entry-${count++}`, { role, scope }));
      }
      for (const { groups, operation, target: name, isNarrow } of steps) {
        const target = TARGETS[name];
        const { path, body } = requestOf(operation, target, isNarrow);
        const ask = async (sent: Sent) => {
          const response = await call(path, { ...sent, method: operation.method, body });
          if (response.headers.get("content-type") === "text/event-stream") {
            await response.body?.cancel();
            return { isAllowed: true, text: "" };
          }
          const text = await response.text();
          const { code } = (text === "" ? {} : JSON.parse(text)) as { readonly code?: string };
          expect(response.status, text).toBeLessThan(500);
          return { isAllowed: response.status !== 401 && code !== "forbidden", text };
        };
        const own = tokens.filter((_, at) => groups.includes(roles[at]?.group ?? ""));
        const session = await access.userSessions.create(
          { id: `oidc.${String(count++).padStart(43, "x")}`, name: "alice", groups },
          60_000,
        );
        const headers = {
          cookie: `konverge_session=${session}`,
          "sec-fetch-site": "same-origin",
        };
        const found = await ask({ headers });
        const byEntry = [];
        for (const token of own) byEntry.push(await ask({ token }));
        const what = [
          operation.operationId,
          name,
          isNarrow,
          groups,
          roles,
          found.text.slice(0, 300),
        ];
        const [first] = byEntry;
        if (first?.isAllowed === true) expect([what, found.isAllowed]).toEqual([what, true]);
        const isPermitted = byEntry.some(({ isAllowed }) => isAllowed);
        if (found.isAllowed) expect([what, isPermitted]).toEqual([what, true]);
        if (own.length < 2)
          expect([what, found.isAllowed]).toEqual([what, first?.isAllowed ?? false]);
        counted[found.isAllowed ? "allowed" : "refused"]++;
        if (found.isAllowed && first?.isAllowed === false) counted.joined++;
        const request = JSON.stringify([path, body]);
        const isSeen = byEntry.some(({ text }) => text.includes(target.name));
        const shows = found.text.includes(target.name) && !request.includes(target.name);
        if (shows) expect([what, isSeen]).toEqual([what, true]);
      }
    }),
    { seed, numRuns: RUNS, endOnFailure: true },
  );
  console.log(JSON.stringify(counted));
  expect(Math.min(counted.allowed, counted.refused)).toBeGreaterThan(0);
  // Few programs reach it, and those of a short run may be none of them.
  if (isLongRun) expect(counted.joined).toBeGreaterThan(0);
});
