import { defined } from "@konverge/core";
import { expect, test } from "vitest";
import { parseApiError } from "../errors/parse-api-error.ts";
import { responseOf } from "./call-result.ts";

test.each([
  ["metrics.k8s.io", "part"],
  ["custom.metrics.k8s.io", "part"],
  ["", undefined],
  ["metrics.example.com", undefined],
])("a 429 of the group %j counts for %s", (group, concern) => {
  const answer = { status: 429, headers: { "retry-after": "30" }, body: "Too many requests" };
  const error = parseApiError({
    status: answer.status,
    body: answer.body,
    retryAfter: "30",
    verb: "list",
    ref: { group, version: "v1", kind: "Any", resource: "anys" },
    sensitive: false,
  });
  expect(responseOf(answer, error)).toEqual({
    kind: "response",
    status: 429,
    retryAfterMs: 30_000,
    ...defined({ concern }),
  });
});
