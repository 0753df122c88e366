import { expect, test } from "vitest";
import { resourceId } from "./resource-name.ts";

test("omits the core group", () => {
  expect(resourceId({ group: "", resource: "configmaps" })).toBe("configmaps");
  expect(resourceId({ group: "apps", resource: "deployments" })).toBe("deployments.apps");
});
