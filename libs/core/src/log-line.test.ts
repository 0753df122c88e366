import { expect, test } from "vitest";
import { logFieldsText, parseLogFields } from "./log-line.ts";

const fieldsOf = (fields: object) => JSON.parse(logFieldsText(fields) ?? "null") as unknown;

test("omits the values of secret fields at any depth", () => {
  const fields = {
    token: "t",
    data: 3,
    a: { b: { password: "p" }, headers: {}, data: { x: "y" } },
  };
  expect(fieldsOf(fields)).toEqual({
    token: "(redacted)",
    data: 3,
    a: { b: { password: "(redacted)" }, headers: "(redacted)", data: "(redacted)" },
  });
});

test("writes errors, dates and large integers as text", () => {
  const fields = { err: new TypeError("no"), at: new Date(0), n: 2n ** 70n, none: undefined };
  expect(fieldsOf(fields)).toEqual({
    err: "TypeError: no",
    at: "1970-01-01T00:00:00.000Z",
    n: "1180591620717411303424",
  });
});

test("returns nothing without fields, and the reason for a cycle", () => {
  expect([logFieldsText({}), logFieldsText({ a: undefined })]).toEqual([undefined, undefined]);
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  expect(fieldsOf(cycle)).toEqual({ omitted: "TypeError" });
});

test("replaces long fields by their length, and those that are no JSON after a redaction", () => {
  expect(parseLogFields('{"a":"bcd"}', 10)).toEqual({ omitted: "11 characters" });
  expect(parseLogFields('{"a":(redacted)}', 100)).toEqual({ omitted: "(redacted)" });
});
