import { ApiException } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { convertApiException, findApiError, noteApiError } from "./api-exception.ts";
import { isConflict, isNotFound, isUnauthorized, suggestsDelayMs } from "./error-predicates.ts";
import { KubeApiError } from "./kube-api-error.ts";

const status = (fields: object) => JSON.stringify({ kind: "Status", ...fields });

test("finds the error of an ApiException, also as a cause", () => {
  const body = status({ code: 404, reason: "NotFound", details: { name: "a", kind: "pods" } });
  const exception = new ApiException(404, "Unknown API Status Code!", body, {});
  expect(isNotFound(exception)).toBe(true);
  expect(isNotFound(new Error("wrapped", { cause: exception }))).toBe(true);
  expect(isConflict(exception)).toBe(false);
  expect(findApiError(exception)).toBe(findApiError(exception));
});

test("a 401 has no body, and a parsed body is read as well", () => {
  expect(isUnauthorized(new ApiException(401, "Unauthorized", undefined, {}))).toBe(true);
  const body = { kind: "Status", code: 409, reason: "Conflict" };
  expect(isConflict(new ApiException(409, "", body, {}))).toBe(true);
  const headers = { "retry-after": "3" };
  expect(suggestsDelayMs(new ApiException(429, "", "slow down", headers))).toBe(3_000);
});

test.each([
  new Error("a"),
  Object.assign(new Error("a"), { code: "ENOENT", body: "", headers: {} }),
  Object.assign(new Error("a"), { code: 404 }),
  { code: 404, body: "", headers: {} },
  undefined,
])("takes no other value for an ApiException: %s", (value) => {
  expect(convertApiException(value)).toBeUndefined();
  expect(isNotFound(value)).toBe(false);
});

test("returns the error of the response whose headers the exception has", () => {
  const headers = {};
  const error = new KubeApiError("get pods n/a: 404", { status: 404, reason: "NotFound" });
  noteApiError(headers, error);
  expect(findApiError(new ApiException(404, "", "hunter2", headers))).toBe(error);
});

test("P12: converts without the text of the response, and with the frames of the exception", () => {
  const body = status({
    code: 422,
    reason: "Invalid",
    message: 'Secret "a" is invalid: data[hunter2]',
    details: { kind: "secrets", name: "a" },
  });
  const converted = convertApiException(new ApiException(422, "", body, {}));
  expect(converted?.message).not.toContain("hunter2");
  expect(converted?.stack).not.toContain("hunter2");
  expect(converted?.stack).toContain("api-exception.test.ts");
});
