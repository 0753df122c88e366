import { expect, test } from "vitest";
import { findLimit } from "./limit-options.ts";
import type { LimitUse } from "./limits.ts";

const limits = { api: { rate: 10 } };

test.each([
  { use: { name: "api" } },
  { use: { name: "api", key: "k".repeat(200), cost: 10 } },
] satisfies { use: LimitUse }[])("finds the limit of $use", ({ use }) => {
  expect(findLimit(limits, use)).toMatchObject({ burst: 10 });
});

test.each([
  { use: { name: "mail" }, detail: 'limit "mail" is not configured (known: "api")' },
  { use: { name: "" }, detail: "limit must be a name or { name, key, cost }" },
  { use: { name: "api", key: "k".repeat(201) }, detail: "a key of at most 200 characters" },
  { use: { name: "api", key: "\uD800" }, detail: "limit must be a name" },
  { use: { name: "api", key: 7 as unknown as string }, detail: "limit must be a name" },
  { use: { name: "api", cost: 0.5 }, detail: 'cost of limit "api" must be an integer >= 1' },
  { use: { name: "api", cost: 11 }, detail: 'cost 11 exceeds the burst 10 of limit "api"' },
] satisfies { use: LimitUse; detail: string }[])("rejects a use: $detail", ({ use, detail }) => {
  expect(() => findLimit(limits, use)).toThrow(detail);
});
