import { expect, test } from "vitest";
import { defined } from "./defined.ts";

test("keeps falsy values and drops undefined", () => {
  expect(defined({ a: 0, b: undefined, c: "", d: null, e: false })).toEqual({
    a: 0,
    c: "",
    d: null,
    e: false,
  });
  expect(Object.keys(defined({ a: undefined }))).toEqual([]);
});
