import { expect, test } from "vitest";
import { queueNames } from "./queue-names.ts";
import { formatRequestId, parseRequestId } from "./request-id.ts";

test("all names of a cluster share one hash tag, for any cluster name", () => {
  const names = queueNames("konverge", "a}b:c", "x:y");
  const tag = "konverge:{a%7Db%3Ac}";
  expect(names.bullPrefix).toBe(tag);
  expect(names.bullName).toBe("x%3Ay");
  const all = [names.timers, names.firing, names.keyHash("k"), names.attempts("k")];
  expect(all.filter((name) => !name.startsWith(`${tag}/`))).toEqual([]);
});

test("a shard has its own hash tag, distinct from every cluster name", () => {
  expect(queueNames("p", "c", "x", 3).bullPrefix).toBe("p:{c/3}");
  expect(queueNames("p", "c/3", "x").bullPrefix).toBe("p:{c%2F3}");
});

test.each([
  ["a{b", "c", "x"],
  ["", "c", "x"],
  ["p", "", "x"],
  ["p", "c", ""],
])("rejects prefix %j, cluster %j, controller %j", (prefix, cluster, controller) => {
  expect(() => queueNames(prefix, cluster, controller)).toThrow(
    expect.objectContaining({ code: "invalid_config" }),
  );
});

test("parses request ids; other texts are not found", () => {
  const key = "c/d/pods/_/a%40b";
  expect(parseRequestId(formatRequestId(key, 12))).toEqual({ key, number: 12 });
  for (const id of ["", "@1", key, `${key}@`, `${key}@0`, `${key}@1e3`, `${key}@-1`]) {
    expect(() => parseRequestId(id)).toThrow(expect.objectContaining({ code: "not_found" }));
  }
});
