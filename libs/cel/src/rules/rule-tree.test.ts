import { expect, test } from "vitest";
import type { RuleSchema } from "../types/rule-schema.ts";
import { fromJson } from "../values/from-json.ts";
import { compileRules } from "./rule-tree.ts";

const schemaOf = (rule: string): RuleSchema => ({
  type: "object",
  properties: {
    a: { type: "integer" },
    s: { type: "string" },
    list: { type: "array", items: { type: "integer" } },
  },
  "x-kubernetes-validations": [{ rule }],
});

function evaluate(rule: string, json = {}): unknown {
  const schema = schemaOf(rule);
  const { tree, issues } = compileRules(schema);
  expect(issues).toEqual([]);
  return tree?.rules[0]?.expression?.evaluate(fromJson(schema, json));
}
const issuesOf = (rule: string) => compileRules(schemaOf(rule)).issues.map(({ detail }) => detail);

test("reports all errors in order of position", () => {
  expect(issuesOf("self.b > 1 && c(self.a)")[0]).toMatch(
    /undefined field 'b'[^]*undeclared reference to 'c'/,
  );
});

test.each([
  ["-3.exists(k, k == 1)", /:1: expression of type 'int' cannot be range/],
  ["-1.5[0].b == 1", /:5: found no matching overload for '_\[_\]' applied to '\(double, int\)'/],
  ["-(3).exists(k, k == 1)", /:1: found no matching overload for '-_' applied to '\(bool\)'/],
  ["!-3.exists(k, k == 1)", /:2: expression of type 'int' cannot be range/],
  ["---3.exists(k, k == 1)", /:1: found no matching overload for '-_' applied to '\(bool\)'/],
  ["-!true", /:1:2: Syntax error/],
  ["!-self.a", /:1:2: Syntax error/],
])("reads the signs of %s as kube-apiserver does", (rule, issue) => {
  expect(issuesOf(rule)[0]).toMatch(issue);
});

test.each([
  ["relations are left-associative", "(1 < 2) == true && 1 == 1 == true", true],
  ["parentheses keep a relation together", "true == (1 < 2)", true],
  ["an int never overflows silently", "9223372036854775807 > 9223372036854775806", true],
  [
    "characters outside of 16 bits are one",
    "'x😀y'.substring(1, 2) == '😀' && 'x😀'.size() == 2",
    true,
  ],
  ["members named like those of objects are members", "{'constructor': 1}.size() == 1", true],
  ["an error on one side is absorbed", "self.a == 1 || true", true],
  ["an even number of signs cancels out", "--'a' == 'a' && !!'a' == 'a'", true],
  ["text in quotes is no parenthesis", "'(' == ')' == false", true],
])("%s", (_title, rule, result) => {
  expect(evaluate(rule)).toBe(result);
});

test("ends loops that take too long", () => {
  const list = Array.from({ length: 200 }, (_, index) => index);
  const nested = "self.list.all(x, self.list.all(y, self.list.all(z, x + y + z >= 0)))";
  expect(() => evaluate(nested, { list })).toThrow("actual cost limit exceeded");
});

test.each([
  ["an item in a list", "self.list.all(x, self.list.all(y, !(7 in self.list)))"],
  ["sets", "self.list.all(x, sets.contains(self.list, self.list))"],
  ["a text in a text", "self.list.all(x, !self.s.contains(self.s + 'b'))"],
  ["a pattern", "self.list.all(x, !self.s.matches('b'))"],
  ["made texts", "self.list.all(x, self.s.replace('a', 'b').size() > 0)"],
])("counts the work of a search: %s", (_title, rule) => {
  const list = Array.from({ length: 300 }, (_, index) => index + 100);
  expect(() => evaluate(rule, { list, s: "a".repeat(40_000) })).toThrow(
    "actual cost limit exceeded",
  );
});

test("does not count the items of a list that is only indexed", () => {
  const list = Array.from({ length: 900 }, (_, index) => index);
  expect(evaluate("self.list.all(x, self.list.all(y, self.list[x] == x))", { list })).toBe(true);
});

test("does not count the items after the one that decides", () => {
  const list = Array.from({ length: 1300 }, (_, index) => index);
  expect(evaluate("self.list.all(x, self.list.exists(y, x == y))", { list })).toBe(true);
});

test.each([
  ["a list per iteration", "lists.range(1000).map(x, lists.range(1000000)).size() > 0"],
  ["a list that doubles", `[lists.range(9)]${".map(a, a + a)".repeat(40)}.size() > 0`],
  ["a text that doubles", `['aaaaaaaa']${".map(a, a + a)".repeat(40)}.map(a, a.split('')) == []`],
  [
    "a list that holds one list often",
    "[lists.range(40000)].all(r, lists.range(99).map(x, r).flatten().size() > 0)",
  ],
])("ends an evaluation that makes %s before the memory is full", (_title, rule) => {
  expect(() => evaluate(rule)).toThrow("actual cost limit exceeded");
});

test.each([
  ["true", " == true"],
  ["1 == 1", " + 1"],
  ["true", " && true"],
])("reports an expression whose operators are nested too deeply: %s%s", (first, rest) => {
  expect(issuesOf(first + rest.repeat(5000))[0]).toContain("Syntax error: ");
});
test("reports too many nested operators", () => {
  expect(issuesOf(`${"1 + ".repeat(5000)}1 == 1`)[0]).toContain("Syntax error: too many nested");
});

test.each([
  ["duration(self.s) > duration('1s')", "1".repeat(200_000)],
  ["double(self.s) > 1.0", `${"1".repeat(200_000)}x`],
  ["isQuantity(self.s) || quantity(self.s).isInteger()", `${"1".repeat(200_000)}!`],
  ["int(self.s.trim()) > 0", ` x${" ".repeat(200_000)}x `],
])("%s rejects a long text in linear time", (rule, s) => {
  expect(() => evaluate(rule, { s })).toThrow(/type conversion error|quantities must match/);
});

test.each([
  ["[\\\\w-.]+@x", "a.b-c@x", true],
  ["^{a}$", "{a}", true],
  ["^a]$", "a]", true],
  ["^\\\\s+$", " \t", true],
])("accepts the pattern %s, as Go does", (pattern, s, result) => {
  expect(evaluate(`self.s.matches('${pattern}')`, { s })).toBe(result);
});
test.each(["a**", "(a", "\\\\C", "\\\\Z", "(?=a)"])("rejects the pattern %s", (pattern) => {
  expect(issuesOf(`self.s.matches('${pattern}')`)[0]).toContain("invalid matches argument");
});

test("the remainder of the smallest integer overflows", () => {
  const rule = "(self.a - 9223372036854775807 - 1) % -1 == 0";
  expect(() => evaluate(rule, { a: 0 })).toThrow("integer overflow");
  expect(evaluate(rule, { a: 1 })).toBe(true);
});

test("rejects a conditional inside of another without parentheses", () => {
  expect(issuesOf("true ? false ? true : false : true")[0]).toContain("Syntax error");
  expect(evaluate("true ? (false ? true : false) : true")).toBe(false);
});

test.each([
  [
    "true || int('x') == 1",
    "program instantiation failed: type conversion error from 'string' to 'int'",
  ],
  [
    "self.s.matches(string('(a'))",
    "program instantiation failed: error parsing regexp: missing closing ): `(a`",
  ],
])("rejects the constant of %s before an evaluation", (rule, error) => {
  expect(issuesOf(rule)).toEqual([error]);
});
test("reports an invalid argument of a literal at the literal", () => {
  expect(issuesOf("timestamp(-999999999999999) == timestamp(1)")[0]).toContain(
    "<input>:1:11: invalid timestamp argument",
  );
  expect(issuesOf("timestamp(-(999999999999999)) == timestamp(1)")).toEqual([]);
});
