import * as fc from "fast-check";
import { expect, test } from "vitest";
import { checkRunId, childIdOf, formatRunId, parseRunId } from "./run-ref.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? Date.now() % 2 ** 31);
const names = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 30 }),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 200 }),
  fc.constantFrom(
    "smoke test",
    "a/b",
    "..",
    "%2F",
    "%",
    "a\u2028b",
    "ü✓",
    "\ud800",
    "x".repeat(200),
  ),
);

test(`every child's id can be used, at any depth (KONVERGE_TEST_SEED=${seed})`, () => {
  fc.assert(
    fc.property(fc.array(names, { minLength: 1, maxLength: 8 }), (path) => {
      let id = "root";
      for (const name of path) id = childIdOf(id, name);
      expect(() => checkRunId(id)).not.toThrow();
      const text = formatRunId({ workflow: "w", id: `${id}~999` }, "c");
      expect(parseRunId(text)).toEqual({ workflow: "w", cluster: "c", id: `${id}~999` });
    }),
    { seed },
  );
});

test(`different children have different ids (KONVERGE_TEST_SEED=${seed})`, () => {
  const parents = fc.constantFrom("a", "x".repeat(450));
  fc.assert(
    fc.property(parents, names, names, (parent, one, other) => {
      expect(childIdOf(parent, one) === childIdOf(parent, other)).toBe(one === other);
    }),
    { seed },
  );
});

test("paths whose names have dots have different ids", () => {
  expect(childIdOf("a", "b.c")).toBe("a.b%2Ec");
  expect(childIdOf(childIdOf("a", "b"), "c")).toBe("a.b.c");
});

test("the id of a child shows the step's name", () => {
  expect(childIdOf("a", "smoke test")).toBe("a.smoke%20test");
  expect(childIdOf("a", "pull#2")).toBe("a.pull#2");
});

test("300 levels of recursion keep the id short", () => {
  let id = "root";
  for (let level = 0; level < 300; level += 1) id = childIdOf(id, "deeper");
  expect(id.length).toBeLessThan(401);
});

test("ids without a form that commands and lists accept are rejected", () => {
  for (const id of ["", " ", "a b", "a\nb", "a\0b", "\ud800", "x".repeat(501)]) {
    expect(() => checkRunId(id)).toThrow("id of the run must be");
  }
  for (const id of ["a", "..", "a/b", "ü✓", "x".repeat(500)]) checkRunId(id);
});
