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

test("reports a function that only kube-apiserver has as such", () => {
  expect(issuesOf("isURL(self.s)")).toEqual([
    "compilation failed: ERROR: <input>:1:6: the embedded API server does not know the function 'isURL', which kube-apiserver has\n | isURL(self.s)\n | .....^",
  ]);
});

test("reports all errors in order of position", () => {
  expect(issuesOf("self.b > 1 && c(self.a)")[0]).toMatch(
    /undefined field 'b'[^]*undeclared reference to 'c'/,
  );
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
  ["text in quotes is no parenthesis", "'(' == ')' == false", true],
])("%s", (_title, rule, result) => {
  expect(evaluate(rule)).toBe(result);
});

test("ends loops that take too long", () => {
  const list = Array.from({ length: 200 }, (_, index) => index);
  const nested = "self.list.all(x, self.list.all(y, self.list.all(z, x + y + z >= 0)))";
  expect(() => evaluate(nested, { list })).toThrow("actual cost limit exceeded");
});

test("rejects a conditional inside of another without parentheses", () => {
  expect(issuesOf("true ? false ? true : false : true")[0]).toContain("Syntax error");
  expect(evaluate("true ? (false ? true : false) : true")).toBe(false);
});
