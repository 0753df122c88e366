import { expect, test } from "vitest";
import { FaultRules, type FaultTarget } from "./fault-rules.ts";

const update: FaultTarget = { verb: "update", resource: "nodepools.demo", userAgent: "worker/1" };
const refuse = { kind: "answer", code: 503 } as const;

test("matches requests by verb, resource and user agent", () => {
  const faults = new FaultRules(() => 0);
  faults.inject({
    verbs: ["update"],
    resources: ["nodepools.demo"],
    userAgent: "worker",
    effect: refuse,
  });
  expect(faults.meet(update)).toEqual(refuse);
  expect(faults.meet({ ...update, verb: "get" })).toBeUndefined();
  expect(faults.meet({ ...update, resource: "machines.demo" })).toBeUndefined();
  expect(faults.meet({ ...update, userAgent: "kubectl/1" })).toBeUndefined();
});
test("matches a share of them", () => {
  const draws = [0.2, 0.3, 0.1];
  const faults = new FaultRules(() => draws.shift() ?? 1);
  faults.inject({ probability: 0.25, effect: refuse });
  expect([1, 2, 3, 4].map(() => faults.meet(update) !== undefined)).toEqual([
    true,
    false,
    true,
    false,
  ]);
});
test("ends after its count, and then the next fault applies", () => {
  const faults = new FaultRules(() => 0);
  faults.inject({ count: 2, effect: refuse });
  faults.inject({ effect: { kind: "latency", ms: 1 } });
  expect([1, 2, 3].map(() => faults.meet(update)?.kind)).toEqual(["answer", "answer", "latency"]);
});
test("faults can be removed one by one or all at once", () => {
  const faults = new FaultRules(() => 0);
  const takeBack = faults.inject({ effect: refuse });
  takeBack();
  expect(faults.meet(update)).toBeUndefined();
  faults.inject({ effect: refuse });
  faults.clear();
  expect(faults.meet(update)).toBeUndefined();
});
test("a watch fault matches only watches", () => {
  const faults = new FaultRules(() => 0);
  faults.inject({ effect: { kind: "silentWatch", afterEvents: 0 } });
  expect(faults.meet(update)).toBeUndefined();
  expect(faults.meet({ ...update, verb: "watch" })?.kind).toBe("silentWatch");
});
test.each([{ probability: 1.5 }, { probability: Number.NaN }, { count: 0 }])(
  "rejects %j by name",
  (bad) => {
    const [field = ""] = Object.keys(bad);
    expect(() => new FaultRules(() => 0).inject({ ...bad, effect: refuse })).toThrow(
      `fault.${field}`,
    );
  },
);
