import { readSignInSettings, type Settings, type SignInSettings } from "@konverge/contracts";
import type { SecretFile } from "./pod-template.ts";

/** The keys of a role, sorted as the chart sorts them. */
const ROLE_KEYS = [
  "classes",
  "clusters",
  "controllers",
  "group",
  "kinds",
  "namespaces",
  "role",
  "scope",
];
const SECRET_KEY = "oidc-client-secret";

/** The sign-in of users, with a client secret from the Secret of the API. Undefined if no provider is configured. */
export function signInOf(settings: Settings): SignInSettings | undefined {
  const { oidcIssuer, oidcClientSecretFile } = settings;
  if (oidcIssuer === undefined) return undefined;
  // The manifests mount the file.
  return readSignInSettings({ ...settings, oidcClientSecretFile: oidcClientSecretFile ?? "/" });
}

/** Returns the variables of the sign-in for the API. */
export function signInEnv(signIn: SignInSettings): Record<string, string> {
  return {
    KONVERGE_OIDC_ISSUER: signIn.issuer,
    KONVERGE_OIDC_CLIENT_ID: signIn.clientId,
    KONVERGE_OIDC_REDIRECT_URL: signIn.redirectUrl,
    KONVERGE_OIDC_SCOPES: signIn.scopes,
    KONVERGE_OIDC_NAME_CLAIM: signIn.nameClaim,
    KONVERGE_OIDC_GROUPS_CLAIM: signIn.groupsClaim,
    KONVERGE_OIDC_PROVIDER_NAME: signIn.providerName,
    KONVERGE_OIDC_SESSION: `${signIn.sessionMs}ms`,
    KONVERGE_OIDC_ROLES: JSON.stringify(signIn.roles, ROLE_KEYS),
  };
}

/** Returns the file with the client secret, which is in the Secret of the API. */
export function signInSecret(secret: string): SecretFile {
  return { setting: "KONVERGE_OIDC_CLIENT_SECRET", secret, key: SECRET_KEY };
}

/** Returns the values of the chart. */
export function signInValues(signIn: SignInSettings): object {
  const { sessionMs, clientSecretFile: _, ...rest } = signIn;
  return { ...rest, secretKey: SECRET_KEY, session: `${sessionMs}ms` };
}
