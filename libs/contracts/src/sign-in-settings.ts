import { invalidConfig, type ErrorIssue } from "@konverge/core";
import type { GroupRole } from "./group-roles.ts";
import type { Settings } from "./settings.ts";

/** The settings of the login with an OIDC provider. */
export interface SignInSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecretFile: string;
  readonly redirectUrl: string;
  readonly scopes: string;
  readonly nameClaim: string;
  readonly groupsClaim: string;
  readonly roles: readonly GroupRole[];
  /** The name of the provider for users. */
  readonly providerName: string;
  readonly sessionMs: number;
}

/** Returns undefined if no provider is configured. @throws KonvergeError `invalid_config` with all missing settings */
export function readSignInSettings(settings: Settings): SignInSettings | undefined {
  const required = {
    KONVERGE_OIDC_ISSUER: settings.oidcIssuer,
    KONVERGE_OIDC_CLIENT_ID: settings.oidcClientId,
    KONVERGE_OIDC_CLIENT_SECRET_FILE: settings.oidcClientSecretFile,
    KONVERGE_OIDC_REDIRECT_URL: settings.oidcRedirectUrl,
    KONVERGE_OIDC_ROLES: settings.oidcRoles,
  };
  const entries = Object.entries(required);
  const missing = entries.filter(([, value]) => value === undefined).map(([name]) => name);
  if (missing.length === entries.length) return undefined;
  const {
    oidcIssuer: issuer,
    oidcClientId: clientId,
    oidcClientSecretFile: clientSecretFile,
    oidcRedirectUrl: redirectUrl,
    oidcRoles: roles,
  } = settings;
  if (
    issuer === undefined ||
    clientId === undefined ||
    clientSecretFile === undefined ||
    redirectUrl === undefined ||
    roles === undefined
  ) {
    throw invalidConfig(
      missing.map((name): ErrorIssue => {
        const detail = `${name} is missing; set it, or unset all KONVERGE_OIDC_* settings`;
        return { pointer: `/${name}`, detail };
      }),
    );
  }
  return {
    issuer,
    clientId,
    clientSecretFile,
    redirectUrl,
    roles,
    scopes: settings.oidcScopes,
    nameClaim: settings.oidcNameClaim,
    groupsClaim: settings.oidcGroupsClaim,
    providerName: settings.oidcProviderName ?? new URL(issuer).host,
    sessionMs: settings.oidcSession,
  };
}
