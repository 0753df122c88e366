import { expect, test } from "vitest";
import { formatTraceparent, parseTraceparent } from "./traceparent.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";

test.each([`00-${traceId}-${spanId}-01`, `cc-${traceId}-${spanId}-01-what-comes-later`])(
  "parses %s and formats it as version 00",
  (text) => {
    const parent = parseTraceparent(text);
    expect(parent).toEqual({ traceId, spanId, flags: 1 });
    expect(parent && formatTraceparent(parent)).toBe(`00-${traceId}-${spanId}-01`);
  },
);

test.each([
  "",
  "nonsense",
  `00-${traceId}-${spanId}-01-more`,
  `ff-${traceId}-${spanId}-01`,
  `00-${"0".repeat(32)}-${spanId}-01`,
  `00-${traceId}-${"0".repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `cc-${traceId}-${spanId}-01-${"x".repeat(1_000)}`,
])("treats %s as absent", (text) => {
  expect(parseTraceparent(text)).toBeUndefined();
});
