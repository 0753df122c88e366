import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";
import { afterAll, beforeAll } from "vitest";

type Claims = Readonly<Record<string, unknown>>;

/** What the provider does to the next responses. */
interface Behavior {
  /** Replaces claims of the ID token; undefined removes one. */
  readonly claims?: (nonce: string) => Claims;
  /** Replaces the ID token. */
  readonly token?: (valid: string) => string | undefined;
  /** Signs with a key that the provider has not published. */
  readonly isForged?: boolean;
  /** Replaces the response of an endpoint. */
  readonly answers?: Readonly<Record<string, (response: ServerResponse) => void>>;
}

/** A provider with a private key, which can send invalid responses. Codes are the nonces of their logins. */
export function useHostileProvider() {
  let behavior: Behavior = {};
  let issuer = "";
  let requests: {
    readonly path: string;
    readonly body: string;
    readonly authorization?: string | undefined;
  }[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const path = request.url ?? "";
      const body = await text(request);
      requests.push({ path, body, authorization: request.headers.authorization });
      const own = behavior.answers?.[path];
      if (own !== undefined) return own(response);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(await answers[path]?.(body)));
    })();
  });
  const keys = generateKeyPair("RS256");
  const others = generateKeyPair("RS256");
  const answers: Readonly<Record<string, (body: string) => Promise<unknown>>> = {
    "/.well-known/openid-configuration": async () => ({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      response_types_supported: ["code"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["RS256", "none", "HS256"],
    }),
    "/keys": async () => ({
      keys: [
        { ...(await exportJWK((await keys).publicKey)), kid: "one", alg: "RS256", use: "sig" },
      ],
    }),
    "/token": async (body) => {
      const nonce = new URLSearchParams(body).get("code") ?? "";
      const now = Math.floor(Date.now() / 1_000);
      const claims = {
        iss: issuer,
        aud: "konverge",
        sub: "1",
        iat: now,
        exp: now + 60,
        nonce,
        preferred_username: "alice",
        groups: ["platform"],
        ...behavior.claims?.(nonce),
      };
      const { privateKey } = behavior.isForged === true ? await others : await keys;
      const valid = await new SignJWT(JSON.parse(JSON.stringify(claims)) as JWTPayload)
        .setProtectedHeader({ alg: "RS256", kid: "one" })
        .sign(privateKey);
      const idToken = behavior.token === undefined ? valid : behavior.token(valid);
      return { access_token: "access", token_type: "Bearer", id_token: idToken };
    },
  };
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    get issuer() {
      return issuer;
    },
    get requests() {
      return requests;
    },
    behave(next: Behavior) {
      behavior = next;
      requests = [];
    },
  };
}
