import { KonvergeError } from "@konverge/core";
import { describe, expect, test } from "vitest";
import * as exported from "./error-predicates.ts";
import { parseApiError } from "./parse-api-error.ts";

const { ignoreNotFound, suggestsDelayMs, ...PREDICATES } = exported;
const { isNotFound, isReplaced } = PREDICATES;
type Predicate = keyof typeof PREDICATES;
const ALL = Object.keys(PREDICATES) as Predicate[];

/** Asserts that exactly the predicates in `holds` return true. */
type Row = readonly [
  title: string,
  status: number,
  body: string | object,
  holds: readonly Predicate[],
  verb?: "create" | "get",
];

const cause = (reason: string, field = "", message = "m") => ({ reason, field, message });
const conflict = (message: string, causes: readonly object[] = []): object => ({
  kind: "Status",
  reason: "Conflict",
  code: 409,
  message,
  details: { name: "web", kind: "deployments", causes },
});
const plain = (reason: string, code: number): object => ({ kind: "Status", reason, code });

const ROWS: readonly Row[] = [
  [
    "a stale version",
    409,
    conflict("the object has been modified"),
    ["isConflict", "isOptimisticConflict"],
  ],
  [
    "another uid in a PUT",
    409,
    conflict("Precondition failed: UID in precondition: a, UID in object meta: b"),
    ["isConflict", "isReplaced"],
  ],
  [
    "another uid in a DELETE",
    409,
    conflict("the UID in the precondition (a) does not match"),
    ["isConflict", "isReplaced"],
  ],
  [
    "another uid found in storage",
    409,
    conflict("StorageError: invalid object, Code: 4"),
    ["isConflict", "isReplaced"],
  ],
  ["apply with a uid to nothing", 409, conflict("uid mismatch"), ["isConflict", "isReplaced"]],
  [
    "another version in a DELETE",
    409,
    conflict("the ResourceVersion in the precondition (1) does not match"),
    ["isConflict", "isOptimisticConflict"],
  ],
  [
    "a field of another manager",
    409,
    conflict("Apply failed", [cause("FieldManagerConflict", ".spec.replicas")]),
    ["isConflict", "isFieldManagerConflict"],
  ],
  ["a name taken", 409, plain("AlreadyExists", 409), ["isAlreadyExists"]],
  [
    "another uid in a merge patch",
    422,
    {
      kind: "Status",
      reason: "Invalid",
      code: 422,
      details: { causes: [cause("FieldValueInvalid", "metadata.uid")] },
    },
    ["isInvalid", "isReplaced"],
  ],
  [
    "a JSON Patch that does not apply",
    422,
    { kind: "Status", reason: "Invalid", code: 422, details: {} },
    ["isInapplicable", "isInvalid"],
  ],
  ["a missing object", 404, plain("NotFound", 404), ["isNotFound"]],
  ["an unknown group", 404, "404 page not found", ["isNotFound"]],
  ["an unknown reason with a known status", 404, plain("Whatever", 404), ["isNotFound"]],
  ["a known reason with another status", 404, plain("Forbidden", 404), ["isForbidden"]],
  ["a version too old", 410, plain("Expired", 410), ["isExpired"]],
  ["gone", 410, plain("Gone", 410), ["isGone"]],
  [
    "a version too new",
    504,
    {
      kind: "Status",
      reason: "Timeout",
      code: 504,
      details: { causes: [cause("ResourceVersionTooLarge")] },
    },
    ["isTimeout", "isResourceVersionTooLarge"],
  ],
  [
    "a version too new, from an older server",
    504,
    {
      kind: "Status",
      reason: "Timeout",
      code: 504,
      message: "Too large resource version: 9, current: 8",
    },
    ["isTimeout", "isResourceVersionTooLarge"],
  ],
  ["a timeout", 504, plain("Timeout", 504), ["isTimeout"]],
  [
    "a quota",
    403,
    { ...plain("Forbidden", 403), message: 'pods "a" is forbidden: exceeded quota: q' },
    ["isForbidden", "isQuotaExceeded"],
  ],
  [
    "a terminating namespace",
    403,
    {
      ...plain("Forbidden", 403),
      details: { causes: [cause("NamespaceTerminating", "metadata.namespace")] },
    },
    ["isForbidden", "isNamespaceTerminating"],
  ],
  ["no access", 403, plain("Forbidden", 403), ["isForbidden"]],
  ["no identity", 401, plain("Unauthorized", 401), ["isUnauthorized"]],
  [
    "too many requests as text",
    429,
    "Too many requests, please try again later.",
    ["isTooManyRequests"],
  ],
  ["429 with any reason", 429, plain("Forbidden", 429), ["isForbidden", "isTooManyRequests"]],
  ["too large", 413, plain("RequestEntityTooLarge", 413), ["isRequestEntityTooLarge"]],
  ["too large, from a proxy", 413, "<html>", ["isRequestEntityTooLarge"]],
  ["server timeout", 500, plain("ServerTimeout", 500), ["isServerTimeout"]],
  ["internal error", 500, plain("InternalError", 500), ["isInternalError"]],
  ["an unconverted error", 500, plain("", 500), ["isInternalError"]],
  ["a bad gateway", 502, "upstream", ["isInternalError"]],
  ["unavailable", 503, "", ["isServiceUnavailable"]],
  ["a bad request", 400, plain("BadRequest", 400), ["isBadRequest"]],
  ["a wrong method", 405, plain("MethodNotAllowed", 405), ["isMethodNotAllowed"]],
  ["not acceptable", 406, "only json", ["isNotAcceptable"]],
  ["a wrong patch type", 415, plain("UnsupportedMediaType", 415), ["isUnsupportedMediaType"]],
  ["a proxy's 409 to a POST", 409, "no", ["isAlreadyExists"], "create"],
  ["a proxy's 409 to anything else", 409, "no", ["isConflict", "isOptimisticConflict"]],
  [
    "a truncated Status",
    409,
    '{"kind":"Status","reason":"AlreadyEx',
    ["isConflict", "isOptimisticConflict"],
  ],
];

describe("exactly the matching predicates return true", () => {
  for (const sensitive of [false, true]) {
    test.for(ROWS)(
      `%s (${sensitive ? "sensitive" : "ordinary"} kind)`,
      ([, status, body, holds, verb = "get"]) => {
        const text = typeof body === "string" ? body : JSON.stringify(body);
        const error = parseApiError({ status, body: text, verb, sensitive });
        expect(ALL.filter((name) => PREDICATES[name](error)).toSorted()).toEqual(
          [...holds].toSorted(),
        );
      },
    );
  }
});

test("predicates search causes and return false for other errors", () => {
  const inner = parseApiError({ status: 404, body: "", verb: "get", sensitive: false });
  expect(isNotFound(new Error("outer", { cause: inner }))).toBe(true);
  expect(ALL.filter((name) => PREDICATES[name](new Error("no")))).toEqual([]);
  expect(ALL.filter((name) => PREDICATES[name](undefined))).toEqual([]);
  expect(isReplaced(new KonvergeError("object_replaced", "x"))).toBe(true);
});

test("ignoreNotFound ignores 404 only", () => {
  expect(
    ignoreNotFound(parseApiError({ status: 404, body: "", verb: "get", sensitive: false })),
  ).toBeUndefined();
  const other = new Error("other");
  expect(() => ignoreNotFound(other)).toThrow(other);
});

test.each([
  [
    "seconds in the details",
    504,
    { reason: "Timeout", details: { retryAfterSeconds: 2 } },
    undefined,
    2_000,
  ],
  [
    "the header before the details",
    429,
    { reason: "TooManyRequests", details: { retryAfterSeconds: 2 } },
    "7",
    7_000,
  ],
  [
    "a server timeout without a number",
    500,
    { reason: "ServerTimeout", details: {} },
    undefined,
    0,
  ],
  [
    "a date in the header",
    503,
    { reason: "ServiceUnavailable" },
    "Wed, 21 Oct 2015 07:28:00 GMT",
    undefined,
  ],
  ["nothing", 409, { reason: "Conflict" }, undefined, undefined],
])("suggestsDelayMs reads %s", (_title, status, body, retryAfter, delayMs) => {
  const text = JSON.stringify({ kind: "Status", code: status, ...body });
  const error = parseApiError({ status, body: text, retryAfter, verb: "get", sensitive: false });
  expect(suggestsDelayMs(error)).toBe(delayMs);
});
