import { expect, test } from "vitest";
import { parseBody } from "./parse-body.ts";

test("reads JSON, and the YAML of a server-side apply", () => {
  const secret = { kind: "Secret", stringData: { password: "canary" } };
  expect(parseBody(JSON.stringify(secret))).toEqual(secret);
  expect(parseBody("kind: Secret\nstringData:\n  password: canary\n")).toEqual(secret);
  expect(parseBody("kind: [")).toBeUndefined();
});
