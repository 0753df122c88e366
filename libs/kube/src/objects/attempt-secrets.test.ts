import { expect, test } from "vitest";
import { createAttemptSecrets } from "./attempt-secrets.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

function scrubbed(text: string, object: object): string {
  const secrets = createAttemptSecrets();
  secrets.note(object);
  return secrets.scrub(text);
}

const secret = {
  apiVersion: "v1",
  kind: "Secret",
  type: "Opaque",
  metadata: {
    name: "db",
    namespace: "shop",
    labels: { tier: "gold-plated" },
    annotations: { note: "whispered" },
  },
  data: { password: base64("hunter2\nsecond line") },
  stringData: { token: "a-token", pin: "4711", tiny: "ab" },
};

test.each([
  [`login with hunter2\nsecond line failed`, "login with (redacted) failed"],
  [`got ${base64("hunter2\nsecond line")}`, "got (redacted)"],
  [JSON.stringify({ password: "hunter2\nsecond line" }), '{"password":"(redacted)"}'],
  ["only the second line", "only the (redacted)"],
  [`token a-token, ${base64("a-token")}`, "token (redacted), (redacted)"],
  ["pin 4711, but not 47110", "pin (redacted), but not 47110"],
  ["labels gold-plated and whispered", "labels (redacted) and (redacted)"],
  [
    "secrets shop/db of kind Secret, type Opaque, ab",
    "secrets shop/db of kind Secret, type Opaque, ab",
  ],
])("redacts %j as %j", (text, expected) => {
  expect(scrubbed(text, secret)).toBe(expected);
});

test("redacts spec and status of a sensitive custom resource, including numbers", () => {
  const object = { metadata: { name: "a" }, spec: { keys: [{ pin: 123_456 }] }, status: "leaked!" };
  expect(scrubbed("123456 and leaked! of a", object)).toBe("(redacted) and (redacted) of a");
});

test("redacts the longest value first and uses no value as a pattern", () => {
  const object = { stringData: { a: "pass", b: "pass.*word(" } };
  expect(scrubbed("pass.*word( pass passes", object)).toBe("(redacted) (redacted) passes");
});

test("withholds a whole text if there are too many values to search for", () => {
  const stringData = Object.fromEntries(
    Array.from({ length: 20_001 }, (_, index) => [`k${index}`, `value-${index}`]),
  );
  expect(scrubbed("anything", { stringData })).toBe("(redacted)");
});

test("accepts a draft with a cycle", () => {
  const draft: Record<string, unknown> = { stringData: { a: "hidden-value" } };
  draft["spec"] = draft;
  expect(scrubbed("hidden-value", draft)).toBe("(redacted)");
});
