import { inspect } from "node:util";
import { expect, test } from "vitest";
import { isNotPermitted } from "./error-predicates.ts";
import { fromStatus, parseApiError } from "./parse-api-error.ts";

const ref = {
  group: "",
  version: "v1",
  kind: "Secret",
  resource: "secrets",
  namespace: "demo",
  name: "db",
};
const CANARY = "hunter2-canary";

/** All texts that could reach a log, a record or a dashboard. */
const everythingOf = (error: Error): string =>
  `${inspect(error, { depth: 10, showHidden: true })} ${JSON.stringify(error)} ${error.stack}`;

const LEAKS: readonly (readonly [string, number, string])[] = [
  [
    "a 422 that quotes the whole object",
    422,
    JSON.stringify({
      kind: "Status",
      reason: "Invalid",
      code: 422,
      message: `Secret "db" is invalid: data: Invalid value: {"password":"${CANARY}"}`,
      details: {
        name: "db",
        kind: "Secret",
        extra: CANARY,
        causes: [
          {
            reason: "FieldValueInvalid",
            message: `Invalid value: "${CANARY}"`,
            field: "data.password",
          },
        ],
      },
    }),
  ],
  ["plain text", 400, `cannot parse ${CANARY}`],
  ["a truncated document", 500, `{"kind":"Status","message":"${CANARY}`],
];

test.each(LEAKS)("keeps no text for a sensitive kind: %s", (_title, status, body) => {
  const error = parseApiError({ status, body, verb: "patch", ref, sensitive: true });
  expect(everythingOf(error)).not.toContain(CANARY);
  expect(error.message).toContain(`patch secrets demo/db: ${status}`);
});

test("keeps code, reason, cause types and field paths for a sensitive kind", () => {
  const error = parseApiError({
    status: 422,
    body: LEAKS[0]?.[2] ?? "",
    verb: "patch",
    ref,
    sensitive: true,
  });
  expect(error).toMatchObject({
    message: "patch secrets demo/db: 422 Invalid (data.password)",
    status: 422,
    reason: "Invalid",
    causes: [{ type: "FieldValueInvalid", field: "data.password", message: "" }],
    details: { name: "db", kind: "Secret" },
  });
});

test("redacts an ERROR event of a watch in the same way", () => {
  const status = { kind: "Status", reason: "InternalError", code: 500, message: CANARY };
  expect(everythingOf(fromStatus(status, { verb: "watch", ref, sensitive: true }))).not.toContain(
    CANARY,
  );
});

test("keeps the server's text for other kinds, truncated when it quotes an object", () => {
  const body = JSON.stringify({
    kind: "Status",
    reason: "Invalid",
    code: 422,
    message: "x".repeat(1_000_000),
  });
  const error = parseApiError({ status: 422, body, verb: "create", sensitive: false });
  expect(error.message).toMatch(/^create call: 422 Invalid: x+…$/);
  expect(error.message.length).toBeLessThan(2_100);
});

test("names the unknown fields of a patch instead of quoting the whole object", () => {
  const quoted = JSON.stringify({ data: CANARY.repeat(1_000) });
  const problems = 'unknown field "status.redy", unknown field "spec.a"';
  const text = `Invalid value: ${JSON.stringify(quoted)}: strict decoding error: ${problems}`;
  const body = JSON.stringify({
    kind: "Status",
    code: 422,
    reason: "Invalid",
    message: ` "" is invalid: patch: ${text}`,
    details: { causes: [{ reason: "FieldValueInvalid", message: text, field: "patch" }] },
  });
  const answer = { status: 422, body, verb: "patch", ref } as const;
  const plain = parseApiError({ ...answer, sensitive: false });
  expect(plain.message).toBe(
    `patch secrets demo/db: 422 Invalid: ${problems}; correct the field, or add it to the schema of the kind`,
  );
  expect(plain.causes.map(({ field }) => field)).toEqual(["status.redy", "spec.a"]);
  const redacted = parseApiError({ ...answer, sensitive: true });
  expect(redacted.message).toBe("patch secrets demo/db: 422 Invalid (status.redy, spec.a)");
  for (const error of [plain, redacted]) expect(everythingOf(error)).not.toContain(CANARY);
});

test("distinguishes a missing permission from a rejection by admission, also for a Secret", () => {
  const answer = (message: string) => {
    const body = JSON.stringify({ kind: "Status", code: 403, reason: "Forbidden", message });
    return parseApiError({ status: 403, body, verb: "list", ref, sensitive: true });
  };
  const denied = answer(
    'secrets is forbidden: User "system:serviceaccount:demo:web" cannot list resource "secrets" in API group "" in the namespace "demo"',
  );
  const admission = answer('pods "a" is forbidden: violates PodSecurity "restricted:latest"');
  expect([denied, admission].map(isNotPermitted)).toEqual([true, false]);
});
