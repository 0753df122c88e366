import { readFile } from "node:fs/promises";
import type { SignInSettings } from "@konverge/contracts";
import { isKonvergeError, KonvergeError } from "@konverge/core";
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  AuthorizationResponseError,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  calculatePKCECodeChallenge,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  clockTolerance,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
  type ClientAuth,
  type Configuration,
  type CustomFetch,
  type IDToken,
} from "openid-client";
import { digest } from "../access/digest.ts";
import { ShortCache } from "../access/short-cache.ts";
import { openLogin, sealLogin } from "./login-cookie.ts";
import { userIdOf, type SignedInUser } from "../access/user-sessions.ts";

/** Metadata of the provider are read again after this time. */
const DISCOVERED_MS = 3_600_000;
/** An unavailable provider is reported within a second. */
const DISCOVERY_MS = 800;
/** The time for each call after the user has logged in at the provider. */
const CALL_MS = 5_000;
const CLOCK_TOLERANCE_S = 30;
const LONGEST_NAME = 150;
const MOST_GROUPS = 10_000;
const BAD_TEXT = /[\p{C}\p{Zl}\p{Zp}]/u;
const AGAIN = "sign in again";

export interface SignInOptions {
  /** Receives the cause of each failed sign-in. */
  readonly onError: (error: unknown) => void;
  /** Longest time of a call to the provider, in ms. Default: 800 for its metadata, 5,000 for the others. */
  readonly deadlineMs?: number;
}

/** The logins of users at an OIDC provider. */
export interface OidcProvider {
  /**
   * Begins a login. Returns the page of the provider, and the value of the cookie.
   * @throws KonvergeError `identity_unavailable`
   */
  begin(returnTo: string): Promise<{ readonly url: string; readonly cookie: string }>;
  /**
   * Completes a login with the parameters of the callback.
   * @throws KonvergeError `unauthorized`, `forbidden`, `identity_unavailable`
   */
  complete(
    search: string,
    cookie: string,
  ): Promise<{ readonly user: SignedInUser; readonly returnTo: string; readonly state: string }>;
  /** Returns the page of the provider that ends its own session. Undefined if it has none, or is unavailable. */
  logoutUrl(returnTo: string): Promise<string | undefined>;
}

/** The metadata of the provider are read at the first login, so that the API starts while the provider is unavailable. */
export function createOidcProvider(
  settings: SignInSettings,
  { onError, deadlineMs }: SignInOptions,
): OidcProvider {
  const { issuer, clientId, clientSecretFile } = settings;
  const redirectUrl = new URL(settings.redirectUrl).href;
  const configurations = new ShortCache<Configuration>({ keptMs: DISCOVERED_MS, most: 2 });
  const discover = async (secret: string): Promise<Configuration> => {
    const configuration = await discovery(
      new URL(issuer),
      clientId,
      { [clockTolerance]: CLOCK_TOLERANCE_S },
      authenticateWith(secret),
      {
        timeout: (deadlineMs ?? DISCOVERY_MS) / 1_000,
        [customFetch]: reachable,
        execute: [
          // The settings allow HTTP for this machine only.
          ...(issuer.startsWith("http:") ? [allowInsecureRequests] : []),
          enableNonRepudiationChecks,
        ],
      },
    );
    configuration.timeout = (deadlineMs ?? CALL_MS) / 1_000;
    return configuration;
  };
  const open = async () => {
    const secret = (await readFile(clientSecretFile, "utf8")).trim();
    if (secret === "") throw new Error(`${clientSecretFile} is empty`);
    const id = digest(secret).toString("base64url");
    return { secret, configuration: await configurations.get(id, () => discover(secret)) };
  };
  const opened = async () => {
    try {
      return await open();
    } catch (error) {
      onError(error);
      throw unavailable(error);
    }
  };
  return {
    async begin(returnTo) {
      const { secret, configuration } = await opened();
      const [state, nonce, verifier] = [randomState(), randomNonce(), randomPKCECodeVerifier()];
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUrl,
        scope: settings.scopes,
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return {
        url: url.href,
        cookie: await sealLogin({ state, nonce, verifier, returnTo }, secret),
      };
    },
    async complete(search, cookie) {
      const { secret, configuration } = await opened();
      const login = await openLogin(cookie, secret);
      if (login === undefined) {
        throw new KonvergeError("unauthorized", `the login has expired; ${AGAIN}`);
      }
      const { state, nonce, verifier, returnTo } = login;
      const url = new URL(redirectUrl);
      url.search = search;
      try {
        const tokens = await authorizationCodeGrant(configuration, url, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const token = tokens.claims();
        if (token === undefined) throw new Error("the provider returned no ID token");
        const read = async () => await fetchUserInfo(configuration, tokens.access_token, token.sub);
        const hasInfo = configuration.serverMetadata().userinfo_endpoint !== undefined;
        return { user: await userOf(settings, token, hasInfo ? read : undefined), returnTo, state };
      } catch (error) {
        if (isKonvergeError(error)) throw error;
        onError(error);
        throw explained(error);
      }
    },
    async logoutUrl(returnTo) {
      try {
        const { configuration } = await open();
        if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined;
        return buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo }).href;
      } catch (error) {
        onError(error);
        return undefined;
      }
    },
  };
}

/** A provider that cannot be reached, as opposed to one that sends an invalid response. */
class UnreachableError extends Error {
  override readonly name = "UnreachableError";
}

const reachable: CustomFetch = async (url, options) => {
  let response: Response;
  try {
    response = await fetch(url, options as RequestInit);
  } catch (cause) {
    throw new UnreachableError(`${new URL(url).origin} did not respond`, { cause });
  }
  if (response.status < 500) return response;
  await response.body?.cancel();
  throw new UnreachableError(`${new URL(url).origin} responded with ${response.status}`);
};

/** Authenticates the API with the method that the provider accepts; both send the secret. */
function authenticateWith(secret: string): ClientAuth {
  const [basic, post] = [ClientSecretBasic(secret), ClientSecretPost(secret)];
  return (server, client, body, headers) => {
    const { token_endpoint_auth_methods_supported: methods = ["client_secret_basic"] } = server;
    const isPost =
      !methods.includes("client_secret_basic") && methods.includes("client_secret_post");
    (isPost ? post : basic)(server, client, body, headers);
  };
}

/** Reads name and groups from the ID token, or else from the userinfo endpoint. @throws KonvergeError `forbidden` */
async function userOf(
  { issuer, nameClaim, groupsClaim, roles }: SignInSettings,
  token: IDToken,
  readInfo: (() => Promise<Readonly<Record<string, unknown>>>) | undefined,
): Promise<SignedInUser> {
  let claims: Readonly<Record<string, unknown>> = token;
  const isComplete = claims[nameClaim] !== undefined && claims[groupsClaim] !== undefined;
  if (!isComplete && readInfo !== undefined) claims = { ...(await readInfo()), ...claims };
  const { [nameClaim]: name, [groupsClaim]: groups } = claims;
  if (
    typeof name !== "string" ||
    name === "" ||
    name.length > LONGEST_NAME ||
    BAD_TEXT.test(name)
  ) {
    const detail = `the claim "${nameClaim}" of the user must be a text of 1 to ${LONGEST_NAME} printable characters; an admin can set KONVERGE_OIDC_NAME_CLAIM`;
    throw new KonvergeError("forbidden", detail);
  }
  if (groups === undefined) {
    const detail = `the provider sent no claim "${groupsClaim}" for "${name}"; an admin can add it at the provider, or set KONVERGE_OIDC_GROUPS_CLAIM`;
    throw new KonvergeError("forbidden", detail);
  }
  const given: readonly unknown[] = Array.isArray(groups) ? groups.slice(0, MOST_GROUPS) : [groups];
  const known = new Set(roles.map(({ group }) => group));
  const own = given.filter((group) => typeof group === "string" && known.has(group)) as string[];
  return { id: userIdOf(issuer, token.sub), name, groups: [...new Set(own)] };
}

function unavailable(cause: unknown): KonvergeError {
  const detail =
    "the OIDC provider is not available, or its settings are wrong; retry later, or see the log of the API process";
  return new KonvergeError("identity_unavailable", detail, { cause, retryAfterMs: 1_000 });
}

/** Returns the error for the user. Its text has nothing of the response, which anyone can send to the callback. */
function explained(error: unknown): KonvergeError {
  if (error instanceof AuthorizationResponseError) {
    return new KonvergeError("forbidden", `the provider rejected the login; ${AGAIN}`, {
      cause: error,
    });
  }
  const isOurs =
    (error instanceof ResponseBodyError && error.error === "invalid_client") ||
    error instanceof WWWAuthenticateChallengeError;
  if (isOurs || isUnreachable(error)) return unavailable(error);
  if (error instanceof ClientError || error instanceof ResponseBodyError) {
    const detail = `the response of the provider is not valid for this login; ${AGAIN}`;
    return new KonvergeError("unauthorized", detail, { cause: error });
  }
  return unavailable(error);
}

function isUnreachable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof UnreachableError || cause.name === "TimeoutError") return true;
  }
  return false;
}
