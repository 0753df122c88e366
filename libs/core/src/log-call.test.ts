import { expect, test } from "vitest";
import { readLogCall } from "./log-call.ts";

test.each([
  [[{ a: 1 }, "text"], { fields: { a: 1 }, message: "text" }],
  [["text"], { fields: {}, message: "text" }],
  [["text", "more"], { fields: {}, message: "more" }],
  [[undefined, "text"], { fields: {}, message: "text" }],
  [[null], { fields: {}, message: "null" }],
])("reads the arguments %j", ([fields, message], expected) => {
  expect(readLogCall(fields, message)).toEqual(expected);
});
