import * as fc from "fast-check";
import { expect, test } from "vitest";
import { keepSafe } from "./keep-safe.ts";

const CANARY = "canary-7Qx";
const unsafe = fc.constantFrom("message", "reason", "by", "key", "namespace", "subject", "name");
const leaf = fc.oneof(
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom(CANARY, `a ${CANARY} in prose`, `ns/${CANARY}`),
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(unsafe, tie("tree"), { maxKeys: 4 }),
  ),
}));

test("no text of an unknown field remains, and everything else does", () => {
  fc.assert(
    fc.property(tree, (value) => {
      const kept = keepSafe({ items: value, level: "error", count: 3 });
      expect(JSON.stringify(kept)).not.toContain(CANARY);
      expect(kept).toMatchObject({ level: "error", count: 3 });
    }),
  );
});

test("equal texts have equal digests in one copy only", () => {
  const value = { items: [{ name: CANARY }, { reason: CANARY }, { reason: "other" }] };
  const [one, two, three] = (keepSafe(value) as { items: Record<string, string>[] }).items;
  expect(one?.["name"]).toBe(two?.["reason"]);
  expect(one?.["name"]).not.toBe(three?.["reason"]);
  expect(JSON.stringify(keepSafe(value))).not.toContain(one?.["name"]);
});

test("keeps names of controllers, and drops prose and secrets in known fields", () => {
  const kept = keepSafe({
    controllers: [{ name: "widgets", waiting: 2 }],
    state: "the password is hunter2!",
    version: "x".repeat(101),
    labels: { "example.com/canary-7Qx": 1 },
  });
  expect(kept).toMatchObject({ controllers: [{ name: "widgets", waiting: 2 }] });
  expect(JSON.stringify(kept)).not.toMatch(/hunter2|xxxx|canary/);
});
