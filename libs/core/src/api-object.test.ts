import { expect, test } from "vitest";
import { formatApiVersion, parseApiVersion } from "./api-object.ts";

test.each([
  ["v1", "", "v1"],
  ["apps/v1", "apps", "v1"],
  ["demo.konverge.dev/v1beta1", "demo.konverge.dev", "v1beta1"],
])("round-trips %s as group %j, version %s", (apiVersion, group, version) => {
  expect(parseApiVersion(apiVersion)).toEqual({ group, version });
  expect(formatApiVersion(group, version)).toBe(apiVersion);
});
