import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from "@konverge/core";
import type { Answer, Expectation, Seen } from "./case.ts";

/** Clients key their pauses by these headers, so every response must have them. */
const IN_EVERY_ANSWER = [
  "audit-id",
  "x-kubernetes-pf-flowschema-uid",
  "x-kubernetes-pf-prioritylevel-uid",
];
const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns the deviations of a response from the expectation. */
export function checkAnswer(answer: Answer, expected: Expectation, seen: Seen): string[] {
  const problems: string[] = [];
  const { body } = answer;
  const status = isJsonObject(body) ? body : {};
  const want = (name: string, actual: JsonValue | undefined, wanted: JsonValue) => {
    if (!jsonEquals(actual, wanted))
      problems.push(`${name} is ${show(actual)}, expected ${show(wanted)}`);
  };
  want("code", answer.code, expected.code);
  if (expected.reason !== undefined) want("reason", status["reason"] ?? "", expected.reason);
  if (expected.message !== undefined) {
    const message = typeof body === "string" ? body : status["message"];
    const { message: wanted } = expected;
    const holds =
      typeof wanted === "string"
        ? message === wanted
        : wanted.test(typeof message === "string" ? message : "");
    if (!holds) problems.push(`message is ${show(message)}, expected ${String(wanted)}`);
  }
  if (expected.causes !== undefined) problems.push(...checkCauses(status, expected.causes));
  if (expected.body !== undefined) problems.push(...missing(body, expected.body, ""));
  for (const path of expected.absent ?? []) {
    if (at(body, path) !== undefined)
      problems.push(`${path} must be absent (got ${show(at(body, path))})`);
  }
  if (expected.generation !== undefined) {
    want("generation", at(body, "metadata.generation"), expected.generation);
  }
  if (expected.items !== undefined) want("items", namesOf(body), [...expected.items]);
  problems.push(...checkVersion(body, expected, seen), ...checkHeaders(answer, expected));
  return problems;
}

function checkCauses(status: JsonObject, wanted: readonly JsonObject[]): string[] {
  const details = status["details"];
  const causes = isJsonObject(details) && Array.isArray(details["causes"]) ? details["causes"] : [];
  if (causes.length !== wanted.length) {
    return [`causes are ${show(causes)}, expected ${wanted.length}`];
  }
  // In any order: Go iterates over an object's members in random order.
  const left = [...causes];
  return wanted.flatMap((one) => {
    const index = left.findIndex((cause) => missing(cause, one, "").length === 0);
    if (index === -1) return [`no cause matches ${show(one)} in ${show(causes)}`];
    left.splice(index, 1);
    return [];
  });
}

function checkVersion(body: JsonValue, { version }: Expectation, seen: Seen): string[] {
  if (version === undefined) return [];
  const isSame = "sameAs" in version;
  const name = isSame ? version.sameAs : version.newSince;
  const before = at(seen[name]?.body ?? null, "metadata.resourceVersion");
  const now = at(body, "metadata.resourceVersion");
  if (typeof now !== "string" || typeof before !== "string")
    return [`no resourceVersion to compare with ${name}`];
  if (isSame)
    return now === before ? [] : [`resourceVersion is ${now}, expected ${before} as in ${name}`];
  return BigInt(now) > BigInt(before)
    ? []
    : [`resourceVersion ${now} is not newer than ${before} of ${name}`];
}

function checkHeaders({ headers }: Answer, expected: Expectation): string[] {
  const problems = IN_EVERY_ANSWER.filter((name) => !UID.test(String(headers[name]))).map(
    (name) => `header ${name} is ${JSON.stringify(headers[name])}, not a uid`,
  );
  for (const [name, pattern] of Object.entries(expected.headers ?? {})) {
    const value = headers[name];
    if (typeof value !== "string" || !pattern.test(value)) {
      problems.push(`header ${name} is ${JSON.stringify(value)}, expected ${String(pattern)}`);
    }
  }
  if (expected.warnings !== undefined) {
    const { warning } = headers;
    const actual = typeof warning === "string" ? warning : "";
    const wanted = expected.warnings.map((text) => `299 - ${JSON.stringify(text)}`).join(", ");
    if (actual !== wanted) problems.push(`warnings are ${actual}, expected ${wanted}`);
  }
  return problems;
}

/** Returns the names of a list's items, in order. */
function namesOf(body: JsonValue): JsonValue {
  const items = isJsonObject(body) ? body["items"] : undefined;
  if (!Array.isArray(items)) return null;
  return items.map((item) => at(item, "metadata.name") ?? null);
}

/** Returns the members of `wanted` that `actual` lacks. */
function missing(actual: JsonValue | undefined, wanted: JsonValue, path: string): string[] {
  if (isJsonObject(wanted)) {
    if (!isJsonObject(actual))
      return [`${path || "body"} is ${show(actual)}, expected ${show(wanted)}`];
    return Object.entries(wanted).flatMap(([key, value]) =>
      missing(actual[key], value, path === "" ? key : `${path}.${key}`),
    );
  }
  return jsonEquals(actual, wanted) ? [] : [`${path} is ${show(actual)}, expected ${show(wanted)}`];
}

function at(value: JsonValue, path: string): JsonValue | undefined {
  let found: JsonValue | undefined = value;
  for (const part of path.split(".")) found = isJsonObject(found) ? found[part] : undefined;
  return found;
}

const show = (value: JsonValue | undefined) =>
  value === undefined ? "absent" : JSON.stringify(value).slice(0, 400);
export { missing as missingMembers };
