import { expect, test } from "vitest";
import { isSensitive, redactObject, redactPatch } from "./redact.ts";

test("P12: keeps only the field paths of a Secret's patch", () => {
  const patch = { data: { password: "Y2FuYXJ5" }, metadata: { labels: { token: "canary" } } };
  const redacted = redactPatch("secrets.", patch);
  expect(JSON.stringify(redacted)).not.toMatch(/Y2FuYXJ5|canary/);
  expect(redacted).toMatchObject({ data: { password: "(redacted)" } });
  expect(isSensitive("secrets")).toBe(true);
  expect(isSensitive("configmaps.")).toBe(false);
});

test("keeps deletions", () => {
  expect(redactPatch("secrets.", { data: { a: null } })).toEqual({ data: { a: null } });
});

test("truncates large patches with a note", () => {
  const patch = { text: "x".repeat(1_000), list: Array.from({ length: 100 }, (_, n) => n) };
  const cut = JSON.stringify(redactPatch("configmaps.", patch));
  expect(cut.length).toBeLessThan(600);
  expect(cut).toContain("1000 characters");
  expect(cut).toContain("100 entries");
});

const secret = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name: "db",
    uid: "u-1",
    labels: { token: "canary" },
    annotations: {
      "kubectl.kubernetes.io/last-applied-configuration": '{"data":{"password":"canary"}}',
      note: "canary",
    },
    managedFields: [{ manager: "kubectl" }],
  },
  data: { password: "canary" },
  items: ["canary"],
};

test("P12: keeps only the identity and the field names of a sensitive object", () => {
  expect(redactObject(secret, { sensitive: true })).toEqual({
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: "db",
      uid: "u-1",
      labels: { token: "(redacted)" },
      annotations: { note: "(redacted)" },
    },
    data: { password: "(redacted)" },
    items: "(redacted)",
  });
});

test("removes managed fields and the copy of kubectl from other objects", () => {
  const { metadata, data } = redactObject(secret, { sensitive: false });
  expect(data).toEqual(secret.data);
  expect(metadata).toEqual({
    name: "db",
    uid: "u-1",
    labels: { token: "canary" },
    annotations: { note: "canary" },
  });
});

test.each([
  { spec: { text: "x".repeat(3_000_000) } },
  { spec: Array.from({ length: 3_000 }, (_, n) => ({ n, text: "x".repeat(900) })) },
  Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`f${n}`, { a: "x".repeat(90) }])),
])("shows at most 200,000 characters of an object", (content) => {
  const shown = redactObject({ ...secret, ...content }, { sensitive: false });
  expect(JSON.stringify(shown).length).toBeLessThanOrEqual(200_000);
  expect(shown).toMatchObject({ kind: "Secret" });
});
