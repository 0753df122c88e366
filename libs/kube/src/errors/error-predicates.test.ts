import { KonvergeError } from "@konverge/core";
import { describe, expect, test } from "vitest";
import * as exported from "./error-predicates.ts";
import { parseApiError } from "./parse-api-error.ts";

const { ignoreNotFound, suggestsDelayMs, ...PREDICATES } = exported;
const { isNotFound, isReplaced } = PREDICATES;
type Predicate = keyof typeof PREDICATES;
const ALL = Object.keys(PREDICATES) as Predicate[];

interface Row {
  readonly title: string;
  readonly status: number;
  readonly body: string | object;
  readonly verb?: "create" | "get";
  /** Asserts that exactly these predicates return true. */
  readonly holds: readonly Predicate[];
}

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
  {
    title: "a stale version",
    status: 409,
    body: conflict("the object has been modified"),
    holds: ["isConflict", "isOptimisticConflict"],
  },
  {
    title: "another uid in a PUT",
    status: 409,
    body: conflict("Precondition failed: UID in precondition: a, UID in object meta: b"),
    holds: ["isConflict", "isReplaced"],
  },
  {
    title: "another uid in a DELETE",
    status: 409,
    body: conflict("the UID in the precondition (a) does not match"),
    holds: ["isConflict", "isReplaced"],
  },
  {
    title: "another uid found in storage",
    status: 409,
    body: conflict("StorageError: invalid object, Code: 4"),
    holds: ["isConflict", "isReplaced"],
  },
  {
    title: "apply with a uid to nothing",
    status: 409,
    body: conflict("uid mismatch"),
    holds: ["isConflict", "isReplaced"],
  },
  {
    title: "another version in a DELETE",
    status: 409,
    body: conflict("the ResourceVersion in the precondition (1) does not match"),
    holds: ["isConflict", "isOptimisticConflict"],
  },
  {
    title: "a field of another manager",
    status: 409,
    body: conflict("Apply failed", [cause("FieldManagerConflict", ".spec.replicas")]),
    holds: ["isConflict", "isFieldManagerConflict"],
  },
  {
    title: "a name taken",
    status: 409,
    body: plain("AlreadyExists", 409),
    holds: ["isAlreadyExists"],
  },
  {
    title: "another uid in a merge patch",
    status: 422,
    body: {
      kind: "Status",
      reason: "Invalid",
      code: 422,
      details: { causes: [cause("FieldValueInvalid", "metadata.uid")] },
    },
    holds: ["isInvalid", "isReplaced"],
  },
  {
    title: "a JSON Patch that does not apply",
    status: 422,
    body: { kind: "Status", reason: "Invalid", code: 422, details: {} },
    holds: ["isInapplicable", "isInvalid"],
  },
  { title: "a missing object", status: 404, body: plain("NotFound", 404), holds: ["isNotFound"] },
  { title: "an unknown group", status: 404, body: "404 page not found", holds: ["isNotFound"] },
  {
    title: "an unknown reason with a known status",
    status: 404,
    body: plain("Whatever", 404),
    holds: ["isNotFound"],
  },
  {
    title: "a known reason with another status",
    status: 404,
    body: plain("Forbidden", 404),
    holds: ["isForbidden"],
  },
  { title: "a version too old", status: 410, body: plain("Expired", 410), holds: ["isExpired"] },
  { title: "gone", status: 410, body: plain("Gone", 410), holds: ["isGone"] },
  {
    title: "a version too new",
    status: 504,
    body: {
      kind: "Status",
      reason: "Timeout",
      code: 504,
      details: { causes: [cause("ResourceVersionTooLarge")] },
    },
    holds: ["isTimeout", "isResourceVersionTooLarge"],
  },
  {
    title: "a version too new, from an older server",
    status: 504,
    body: {
      kind: "Status",
      reason: "Timeout",
      code: 504,
      message: "Too large resource version: 9, current: 8",
    },
    holds: ["isTimeout", "isResourceVersionTooLarge"],
  },
  { title: "a timeout", status: 504, body: plain("Timeout", 504), holds: ["isTimeout"] },
  {
    title: "a quota",
    status: 403,
    body: { ...plain("Forbidden", 403), message: 'pods "a" is forbidden: exceeded quota: q' },
    holds: ["isForbidden", "isQuotaExceeded"],
  },
  {
    title: "a terminating namespace",
    status: 403,
    body: {
      ...plain("Forbidden", 403),
      details: { causes: [cause("NamespaceTerminating", "metadata.namespace")] },
    },
    holds: ["isForbidden", "isNamespaceTerminating"],
  },
  { title: "no access", status: 403, body: plain("Forbidden", 403), holds: ["isForbidden"] },
  {
    title: "no identity",
    status: 401,
    body: plain("Unauthorized", 401),
    holds: ["isUnauthorized"],
  },
  {
    title: "too many requests as text",
    status: 429,
    body: "Too many requests, please try again later.",
    holds: ["isTooManyRequests"],
  },
  {
    title: "429 with any reason",
    status: 429,
    body: plain("Forbidden", 429),
    holds: ["isForbidden", "isTooManyRequests"],
  },
  {
    title: "too large",
    status: 413,
    body: plain("RequestEntityTooLarge", 413),
    holds: ["isRequestEntityTooLarge"],
  },
  {
    title: "too large, from a proxy",
    status: 413,
    body: "<html>",
    holds: ["isRequestEntityTooLarge"],
  },
  {
    title: "server timeout",
    status: 500,
    body: plain("ServerTimeout", 500),
    holds: ["isServerTimeout"],
  },
  {
    title: "internal error",
    status: 500,
    body: plain("InternalError", 500),
    holds: ["isInternalError"],
  },
  { title: "an unconverted error", status: 500, body: plain("", 500), holds: ["isInternalError"] },
  { title: "a bad gateway", status: 502, body: "upstream", holds: ["isInternalError"] },
  { title: "unavailable", status: 503, body: "", holds: ["isServiceUnavailable"] },
  { title: "a bad request", status: 400, body: plain("BadRequest", 400), holds: ["isBadRequest"] },
  {
    title: "a wrong method",
    status: 405,
    body: plain("MethodNotAllowed", 405),
    holds: ["isMethodNotAllowed"],
  },
  { title: "not acceptable", status: 406, body: "only json", holds: ["isNotAcceptable"] },
  {
    title: "a wrong patch type",
    status: 415,
    body: plain("UnsupportedMediaType", 415),
    holds: ["isUnsupportedMediaType"],
  },
  {
    title: "a proxy's 409 to a POST",
    status: 409,
    body: "no",
    verb: "create",
    holds: ["isAlreadyExists"],
  },
  {
    title: "a proxy's 409 to anything else",
    status: 409,
    body: "no",
    holds: ["isConflict", "isOptimisticConflict"],
  },
  {
    title: "a truncated Status",
    status: 409,
    body: '{"kind":"Status","reason":"AlreadyEx',
    holds: ["isConflict", "isOptimisticConflict"],
  },
];

describe("exactly the matching predicates return true", () => {
  for (const sensitive of [false, true]) {
    test.each(ROWS.map((row) => [row.title, row] as const))(
      `%s (${sensitive ? "sensitive" : "ordinary"} kind)`,
      (_title, { status, body, verb = "get", holds }) => {
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
