import { KonvergeError } from "@konverge/core";
import { expect, test } from "vitest";
import { readSettings } from "./settings.ts";
import { readSignInSettings } from "./sign-in-settings.ts";

const ENV = {
  KONVERGE_OIDC_ISSUER: "https://id.example.com",
  KONVERGE_OIDC_CLIENT_ID: "konverge",
  KONVERGE_OIDC_CLIENT_SECRET_FILE: "/run/secrets/oidc",
  KONVERGE_OIDC_REDIRECT_URL: "https://konverge.example.com/ops/auth/callback",
  KONVERGE_OIDC_ROLES: '[{"group":"platform","role":"admin"}]',
};

function failureOf(env: Readonly<Record<string, string>>): string {
  try {
    readSignInSettings(readSettings({ env }));
  } catch (error) {
    if (error instanceof KonvergeError) return error.message;
    throw error;
  }
  return "";
}

test("without settings, there is no sign-in", () => {
  expect(readSignInSettings(readSettings({ env: {} }))).toBeUndefined();
});

test("reads the settings with their defaults", () => {
  expect(readSignInSettings(readSettings({ env: ENV }))).toEqual({
    issuer: "https://id.example.com",
    clientId: "konverge",
    clientSecretFile: "/run/secrets/oidc",
    redirectUrl: "https://konverge.example.com/ops/auth/callback",
    scopes: "openid profile email",
    nameClaim: "preferred_username",
    groupsClaim: "groups",
    roles: [{ group: "platform", role: "admin", scope: {} }],
    providerName: "id.example.com",
    sessionMs: 8 * 3_600_000,
  });
});

test("reports all missing settings", () => {
  const { KONVERGE_OIDC_CLIENT_ID: _, KONVERGE_OIDC_ROLES: __, ...rest } = ENV;
  const text = failureOf(rest);
  expect(text).toContain("KONVERGE_OIDC_CLIENT_ID is missing; set it");
  expect(text).toContain("KONVERGE_OIDC_ROLES is missing; set it");
});

test.each([
  ["ISSUER", "http://id.example.com", "must be an https:// URL"],
  ["ISSUER", "https://id.example.com?a=b", "must not contain a user name"],
  ["ISSUER", "https://a:b@id.example.com", "must not contain a user name"],
  ["ISSUER", "id.example.com", "must be an https:// URL"],
  ["REDIRECT_URL", "https://konverge.example.com/", "followed by auth/callback"],
  ["REDIRECT_URL", "https://konverge.example.com/auth/callback?x", "followed by auth/callback"],
  ["REDIRECT_URL", "http://konverge.example.com/auth/callback", "must be an https:// URL"],
  ["SCOPES", "profile email", "with openid among them"],
  ["SCOPES", "openid,profile", "with openid among them"],
  ["SESSION", "30s", "must be a duration from 1m to 30d"],
  ["SESSION", "8", "must be a number and a unit"],
  ["ROLES", "platform=admin", "must be JSON such as"],
  ["ROLES", "{}", "must be a list"],
  ["ROLES", "[]", "must have an entry"],
  [
    "ROLES",
    '[{"group":"a","role":"admin"},{"group":"b","role":"owner"}]',
    "entry 2: role must be one of viewer",
  ],
  ["ROLES", '[{"group":"","role":"admin"}]', "entry 1: group must be a name of a group"],
  [
    "ROLES",
    '[{"group":"a","role":"admin","scope":{"namespaces":[]}}]',
    "entry 1: scope.namespaces must not be empty",
  ],
  ["ROLES", '[{"group":"a","role":"admin","team":"x"}]', "entry 1:"],
])("rejects %s=%s", (name, value, problem) => {
  const text = failureOf({ ...ENV, [`KONVERGE_OIDC_${name}`]: value });
  expect(text).toContain(`KONVERGE_OIDC_${name}: `);
  expect(text).toContain(problem);
});
