import type { GroupRole } from "@konverge/contracts";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { covers } from "./caller.ts";
import { grantOf } from "./group-grant.ts";

const NAMES = ["a", "b", "c"];
const names = () => fc.option(fc.subarray(NAMES, { minLength: 1 }), { nil: undefined, freq: 2 });
const entry = (): fc.Arbitrary<GroupRole> =>
  fc.record({
    group: fc.constantFrom("one", "two", "three", "four"),
    role: fc.constantFrom("viewer", "operator", "admin"),
    scope: fc
      .record({ clusters: names(), controllers: names(), namespaces: names() })
      .map((scope) => JSON.parse(JSON.stringify(scope)) as GroupRole["scope"]),
  });
const place = fc.record({
  cluster: fc.constantFrom(...NAMES),
  controller: fc.constantFrom(...NAMES),
  namespace: fc.constantFrom(...NAMES),
});

test("a grant never exceeds the entries of the user, and includes the first one", () => {
  const roles = fc.array(entry(), { minLength: 1, maxLength: 6 });
  const groups = fc.subarray(["one", "two", "three", "four"]);
  fc.assert(
    fc.property(roles, groups, fc.array(place, { minLength: 20 }), (given, own, places) => {
      const grant = grantOf(given, own);
      const entries = given.filter(({ group }) => own.includes(group));
      const [first] = entries;
      if (first === undefined || grant === undefined) {
        expect([first, grant]).toEqual([undefined, undefined]);
        return;
      }
      expect(grant.role).toBe(first.role);
      const same = entries.filter(({ role }) => role === first.role);
      for (const at of places) {
        const isIncluded = covers(grant.scope, at);
        if (covers(first.scope, at)) expect(isIncluded).toBe(true);
        if (isIncluded) expect(same.some(({ scope }) => covers(scope, at))).toBe(true);
      }
    }),
    { numRuns: 200 },
  );
});

test.each([
  [
    "the namespaces of two teams",
    [{ namespaces: ["a"] }, { namespaces: ["b"] }],
    { namespaces: ["a", "b"] },
  ],
  ["a wider entry", [{ namespaces: ["a"] }, {}], {}],
  [
    "two fields, which have no common scope",
    [
      { namespaces: ["a"], clusters: ["x"] },
      { namespaces: ["b"], clusters: ["y"] },
    ],
    { namespaces: ["a"], clusters: ["x"] },
  ],
  [
    "an entry that fits only after another one",
    [
      { namespaces: ["a"], clusters: ["x"] },
      { namespaces: ["a", "b"], clusters: ["y"] },
      { namespaces: ["b"], clusters: ["x"] },
    ],
    { namespaces: ["a", "b"], clusters: ["x", "y"] },
  ],
])("joins %s", (_, scopes, joined) => {
  const roles = scopes.map((scope) => ({ group: "team", role: "viewer", scope }) as const);
  expect(grantOf(roles, ["team"])).toEqual({ role: "viewer", scope: joined });
});

test("does not join entries with another role or other classes", () => {
  const roles: GroupRole[] = [
    { group: "one", role: "viewer", scope: { namespaces: ["a"] } },
    { group: "two", role: "admin", scope: {} },
    { group: "three", role: "viewer", scope: {}, classes: ["event"] },
  ];
  expect(grantOf(roles, ["three", "two", "one"])).toEqual({
    role: "viewer",
    scope: { namespaces: ["a"] },
  });
});
