import { defined, type ApiObject } from "@konverge/core";
import { expect, test } from "vitest";
import { ownerUidOf } from "./owner-references.ts";

const owner = (uid?: string): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", ...defined({ uid }) },
});

test("ownedBy needs an object with a uid, since every object would match without it", () => {
  expect(ownerUidOf(undefined)).toBeUndefined();
  expect(ownerUidOf(owner("u"))).toBe("u");
  for (const other of [owner(), owner("")]) {
    expect(() => ownerUidOf(other)).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        message: 'ownedBy: ConfigMap "a" has no metadata.uid; pass an object that was read',
      }),
    );
  }
});
