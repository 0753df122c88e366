import { defined } from "@konverge/core";
import { describe, expect, test } from "vitest";
import type { ApiCall } from "../contract/api-call.ts";
import { assertPlannable } from "./assert-plannable.ts";

function callOf(method: string, query: string, body?: string): ApiCall {
  const path = `/api/v1/namespaces/demo/configmaps/one${query}`;
  return { scope: {}, method, path, ...defined({ body }) } as unknown as ApiCall;
}

describe("a client that only plans", () => {
  const only = { isDryRunOnly: true };

  test.each([
    callOf("GET", ""),
    callOf("PATCH", "?dryRun=All"),
    callOf("DELETE", "?dryRun=All"),
    callOf("DELETE", "?dryRun=All", '{"dryRun":["All"]}'),
  ])("sends reads and dry runs: $method $path", (call) => {
    expect(() => assertPlannable(call, only)).not.toThrow();
  });

  test.each([
    callOf("PATCH", ""),
    callOf("PUT", "?dryRun="),
    callOf("POST", "?fieldManager=dryRun=All"),
    callOf("DELETE", "?dryRun=All", "{}"),
    callOf("POST", "/proxy"),
  ])("rejects every other call: $method $path", (call) => {
    expect(() => assertPlannable(call, only)).toThrow(/was not sent/);
  });

  test("other clients may write outside of plans", () => {
    expect(() => assertPlannable(callOf("PATCH", ""))).not.toThrow();
  });
});
