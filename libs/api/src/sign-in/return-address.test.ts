import * as fc from "fast-check";
import { expect, test } from "vitest";
import { returnAddress } from "./return-address.ts";

const BASE = "https://konverge.example/ops/";

test.each([
  ["", BASE],
  ["objects?namespace=shop#top", `${BASE}objects?namespace=shop#top`],
  [`${BASE}live`, `${BASE}live`],
  ["/ops/live", `${BASE}live`],
  ["/elsewhere", BASE],
  ["../elsewhere", BASE],
  ["..%2felsewhere", `${BASE}..%2felsewhere`],
  ["//evil.example/ops/", BASE],
  ["/\\evil.example/ops/", BASE],
  ["\\\\evil.example/ops/", BASE],
  ["https://evil.example/ops/", BASE],
  ["https://konverge.example@evil.example/ops/", BASE],
  ["https://evil@konverge.example/ops/", BASE],
  ["http://konverge.example/ops/", BASE],
  ["javascript:alert(1)", BASE],
  ["data:text/html,x", BASE],
  ["\tjavascript:alert(1)", BASE],
  [`x${"y".repeat(2_000)}`, BASE],
])("returns from %j to %j", (text, address) => {
  expect(returnAddress(text, BASE)).toBe(address);
});

test("any text returns to a page of the dashboard", () => {
  const part = fc.constantFrom(
    "/",
    "\\",
    "//",
    ".",
    "..",
    ":",
    "@",
    "evil.example",
    "https",
    "%2f",
    "?",
    "#",
    "\t",
    "\n",
    "ops",
  );
  const text = fc.oneof(
    fc.array(part).map((parts) => parts.join("")),
    fc.webUrl(),
    fc.string({ unit: "binary" }),
  );
  fc.assert(
    fc.property(text, (given) => {
      const address = returnAddress(given, BASE);
      expect(new URL(address).href.startsWith(BASE)).toBe(true);
      expect(address.startsWith(BASE)).toBe(true);
    }),
    { numRuns: 300 },
  );
});
