import { inspect } from "node:util";
import { writeFileSync } from "node:fs";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { useClientSecret } from "../../support/use-oidc-provider.ts";
import { useApi } from "./api-harness.ts";
import { useHostileProvider } from "./hostile-provider.ts";
import { BASE, Browser, signInSettings } from "./sign-in-stage.ts";
import { seed } from "../../support/test-run.ts";

console.log(`KONVERGE_TEST_SEED=${seed}`);

const harness = useApi();
const provider = useHostileProvider();
const { path: secretPath, secret } = useClientSecret();
const HOUR_S = 3_600;

/** @param deadlineMs of calls. Default: more than a busy machine needs; null: that of the API. */
function serve(env: Readonly<Record<string, string>> = {}, deadlineMs: number | null = 60_000) {
  const errors: unknown[] = [];
  const roles = [{ group: "platform", role: "admin" }];
  const settings = signInSettings(provider.issuer, secretPath, { roles, env });
  const call = harness.serve({
    signIn: {
      settings,
      onError: (error) => errors.push(error),
      ...(deadlineMs === null ? {} : { deadlineMs }),
    },
  });
  return { call, errors };
}

/** Begins a login. The hostile provider's codes are nonces. */
async function begin(browser: Browser) {
  const response = await browser.send("auth/login");
  expect(response.status, await response.clone().text()).toBe(302);
  const url = new URL(response.headers.get("location") ?? "");
  const [state = "", nonce = ""] = ["state", "nonce"].map(
    (name) => url.searchParams.get(name) ?? "",
  );
  return {
    url,
    callback: `auth/callback?${new URLSearchParams({ code: nonce, state }).toString()}`,
    state,
    nonce,
  };
}

async function refused(response: Response, status: number): Promise<string> {
  const page = await response.text();
  expect([response.status, page]).toEqual([status, page]);
  expect(response.headers.getSetCookie().join()).not.toContain("konverge_session=oidc");
  return page;
}

/** Returns the ID and the secret of the client (RFC 6749, 2.3.1). */
function secretIn(request: (typeof provider.requests)[number] | undefined): string {
  const [, encoded = ""] = /^Basic (.*)$/.exec(request?.authorization ?? "") ?? [];
  return decodeURIComponent(Buffer.from(encoded, "base64").toString());
}

const now = () => Math.floor(Date.now() / 1_000);
const without = (part: number, text: string) =>
  text
    .split(".")
    .map((each, at) => (at === part ? "" : each))
    .join(".");
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const withHeader = (header: object) => (token: string) =>
  [encode(header), ...token.split(".").slice(1)].join(".");

test.each<[string, Parameters<typeof provider.behave>[0]]>([
  ["another issuer", { claims: () => ({ iss: "https://id.example" }) }],
  ["another audience", { claims: () => ({ aud: "another-client" }) }],
  ["another nonce", { claims: () => ({ nonce: "another" }) }],
  ["no nonce", { claims: () => ({ nonce: undefined }) }],
  ["no subject", { claims: () => ({ sub: undefined }) }],
  ["no expiry", { claims: () => ({ exp: undefined }) }],
  ["an expiry an hour ago", { claims: () => ({ exp: now() - HOUR_S }) }],
  ["a beginning in an hour", { claims: () => ({ nbf: now() + HOUR_S }) }],
  ["a key that is not published", { isForged: true }],
  ["the algorithm none", { token: (valid) => without(2, withHeader({ alg: "none" })(valid)) }],
  ["the algorithm none and a signature", { token: withHeader({ alg: "none", kid: "one" }) }],
  ["the algorithm HS256", { token: withHeader({ alg: "HS256", kid: "one" }) }],
  ["no signature", { token: (valid) => without(2, valid) }],
  ["no payload", { token: (valid) => without(1, valid) }],
  ["no form", { token: () => "text" }],
  ["no existence", { token: () => undefined }],
])("rejects an ID token with %s", async (_, behavior) => {
  provider.behave(behavior);
  const { call, errors } = serve();
  const browser = new Browser(call);
  const { callback } = await begin(browser);
  const page = await refused(await browser.send(callback), 401);
  expect(page).toContain("The response of the provider is not valid for this login");
  expect(errors.length, inspect(errors)).toBe(1);
  expect((await browser.send("v1/whoami")).status).toBe(401);
});

test("accepts the clock of a provider that is 20 s ahead or behind", async () => {
  const { call } = serve();
  for (const skewS of [-20, 20]) {
    provider.behave({
      claims: () => ({
        iat: now() + skewS,
        nbf: now() + skewS,
        exp: now() + Math.min(skewS, 0) + 1,
      }),
    });
    const browser = new Browser(call);
    const { callback } = await begin(browser);
    expect((await browser.send(callback)).status).toBe(200);
  }
});

test("accepts a callback once, only from the browser that began the login", async () => {
  provider.behave({});
  const { call } = serve();
  const [browser, other] = [new Browser(call), new Browser(call)];
  const { callback, state } = await begin(browser);
  const cookie = browser.cookie("konverge_login") ?? "";
  // Without a cookie, and with that of another login.
  await refused(await other.send(callback), 401);
  await begin(other);
  await refused(await other.send(callback), 401);
  expect(provider.requests.filter(({ path }) => path === "/token")).toEqual([]);

  expect((await browser.send(callback)).status).toBe(200);
  expect(browser.cookie("konverge_login")).toBeUndefined();
  await refused(await browser.send(callback), 401);
  // The hostile provider accepts a code twice.
  browser.keep("konverge_login", cookie);
  await refused(await browser.send(callback), 401);
  const keys = await harness.queues.redis.keys(`${harness.queues.prefix}:*`);
  expect(keys.join()).not.toContain(state);
});

test("sends PKCE with S256 and the client secret, which is read for each login", async () => {
  provider.behave({});
  const { call } = serve();
  const browser = new Browser(call);
  const { url, callback } = await begin(browser);
  expect(Object.fromEntries(url.searchParams)).toMatchObject({
    code_challenge_method: "S256",
    redirect_uri: `${BASE}auth/callback`,
    response_type: "code",
    scope: "openid profile groups",
  });
  await browser.send(callback);
  const sent = provider.requests.find(({ path }) => path === "/token");
  expect(secretIn(sent)).toBe(`konverge:${secret}`);
  const verifier = new URLSearchParams(sent?.body).get("code_verifier") ?? "";
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  expect(Buffer.from(digest).toString("base64url")).toBe(url.searchParams.get("code_challenge"));

  const pending = await begin(browser);
  try {
    writeFileSync(secretPath, "a-rotated-secret");
    // The cookie of a login in progress depends on the secret.
    await refused(await browser.send(pending.callback), 401);
    const next = await begin(browser);
    expect((await browser.send(next.callback)).status).toBe(200);
    const again = provider.requests.findLast(({ path }) => path === "/token");
    expect(secretIn(again)).toBe("konverge:a-rotated-secret");
  } finally {
    writeFileSync(secretPath, secret);
  }
});

test.each<[string, string, number]>([
  ["an error of the server", "/token", 500],
  ["a rejected secret", "/token", 401],
  ["an error of the keys", "/keys", 503],
])("reports %s as unavailable", async (_, path, status) => {
  provider.behave({
    answers: {
      [path]: (response) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: "invalid_client" }));
      },
    },
  });
  const { call, errors } = serve();
  const browser = new Browser(call);
  const { callback } = await begin(browser);
  const response = await browser.send(callback);
  expect(response.headers.get("retry-after")).toBe("1");
  await refused(response, 503);
  expect(errors.length).toBe(1);
});

test("a rejected code needs another login", async () => {
  provider.behave({
    answers: {
      "/token": (response) => {
        response.writeHead(400, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: "invalid_grant" }));
      },
    },
  });
  const browser = new Browser(serve().call);
  const page = await refused(await browser.send((await begin(browser)).callback), 401);
  expect(page).toContain("sign in again");
});

test("shows nothing of the callback, and rejects every other one", async () => {
  provider.behave({});
  const { call } = serve({});
  const browser = new Browser(call);
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom("access_denied", "<script>alert(1)</script>", "%00", "a".repeat(5_000)),
  );
  const name = fc.constantFrom(
    "code",
    "state",
    "error",
    "error_description",
    "iss",
    "id_token",
    "session_state",
    "response",
    "x",
  );
  const marker = "evil-marker";
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(name, text), { maxLength: 5 }),
      fc.constantFrom("none", "own", "mangled"),
      fc.boolean(),
      async (params, cookie, hasState) => {
        const { state } = await begin(browser);
        const own = browser.cookie("konverge_login") ?? "";
        if (cookie !== "own")
          browser.keep("konverge_login", cookie === "none" ? "" : `${own.slice(0, -3)}AAA`);
        const query = new URLSearchParams();
        for (const [key, value] of params) query.append(key, `${marker}${value}`);
        if (hasState) query.set("state", state);
        // A code that the provider would accept needs its nonce.
        const response = await browser.send(`auth/callback?${query.toString()}`);
        const page = await response.text();
        expect([response.status, page]).toEqual([expect.toBeOneOf([401, 403, 429]), page]);
        expect(page).not.toContain(marker);
        expect(browser.cookie("konverge_session")).toBeUndefined();
      },
    ),
    { seed, numRuns: 40 },
  );
});

test.each([
  ["control characters", { preferred_username: "a\nb" }],
  ["a change of direction", { preferred_username: "a\u202eb" }],
  ["200 characters", { preferred_username: "a".repeat(200) }],
  ["another type", { preferred_username: ["alice"] }],
  ["no name", { preferred_username: undefined }],
  ["no groups", { groups: undefined }],
])("rejects a user whose name has %s", async (_, claims) => {
  provider.behave({ claims: () => claims });
  const browser = new Browser(serve().call);
  const page = await refused(await browser.send((await begin(browser)).callback), 403);
  expect(page).toMatch(/KONVERGE_OIDC_(NAME|GROUPS)_CLAIM/);
});

test("accepts one group as text, and ignores groups of other types", async () => {
  for (const groups of ["platform", [1, null, { platform: true }, ["platform"], "platform"]]) {
    provider.behave({ claims: () => ({ groups }) });
    const browser = new Browser(serve().call);
    expect((await browser.send((await begin(browser)).callback)).status).toBe(200);
  }
  provider.behave({
    claims: () => ({ groups: [["platform"], { group: "platform" }, "PLATFORM"] }),
  });
  const browser = new Browser(serve().call);
  await refused(await browser.send((await begin(browser)).callback), 403);
});

test.each([
  ["https://konverge.example/", "__Host-konverge_login", "__Host-konverge_session", "/"],
  ["https://konverge.example/ops/", "konverge_login", "konverge_session", "/ops/"],
])(
  "with HTTPS at %s, cookies are secure and limited to the dashboard",
  async (base, login, session, path) => {
    provider.behave({});
    const { call } = serve({ KONVERGE_OIDC_REDIRECT_URL: `${base}auth/callback` });
    const browser = new Browser(call);
    const { url, callback } = await begin(browser);
    expect(url.searchParams.get("redirect_uri")).toBe(`${base}auth/callback`);
    const page = await browser.send(callback);
    expect(await page.text()).toContain(`content="0;url=${base}"`);
    const attributes = (site: string) => `Path=${path}; HttpOnly; Secure; SameSite=${site}`;
    expect(browser.set[0]).toContain(`${login}=`);
    expect(browser.set[0]).toContain(attributes("Lax"));
    expect(browser.set.at(-1)).toContain(`${session}=oidc.`);
    expect(browser.set.at(-1)).toContain(attributes("Strict"));
  },
);

test("a provider whose metadata name another issuer is not used", async () => {
  provider.behave({
    answers: {
      "/.well-known/openid-configuration": (response) => {
        response.setHeader("content-type", "application/json");
        response.end(
          JSON.stringify({ issuer: "https://id.example", token_endpoint: "https://id.example/t" }),
        );
      },
    },
  });
  const page = await refused(await new Browser(serve().call).send("auth/login"), 503);
  expect(page).toContain("its settings are wrong");
});

test("a provider that does not respond is reported within a second", async () => {
  provider.behave({ answers: { "/.well-known/openid-configuration": () => undefined } });
  // The deadline of the call ends it; the test has none of its own.
  const { call, errors } = serve({}, null);
  await refused(await new Browser(call).send("auth/login"), 503);
  expect(inspect(errors)).toContain("TimeoutError");
});
