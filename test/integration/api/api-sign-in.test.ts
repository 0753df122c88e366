import { expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { useOidcProvider } from "../../support/use-oidc-provider.ts";
import { useApi } from "./api-harness.ts";
import { BASE, Browser, signInSettings } from "./sign-in-stage.ts";

const harness = useApi();
const provider = useOidcProvider(() => `${BASE}auth/callback`);
const ROLES = [
  { group: "platform", role: "admin" },
  { group: "demo", role: "operator", scope: { namespaces: ["demo"] } },
  { group: "billing", role: "operator", scope: { namespaces: ["billing"] } },
  { group: "staff", role: "viewer" },
];
const serve = (roles: readonly object[]) => {
  const settings = signInSettings(provider.issuer, provider.secretPath, { roles });
  return harness.serve({ signIn: { settings, onError: () => undefined, deadlineMs: 60_000 } });
};
const SAME_ORIGIN = { "sec-fetch-site": "same-origin" };
const WHOAMI = "v1/whoami";
const RECONCILE = { controller: "node-pool", namespace: "demo", name: "blue" };

const user = (...groups: readonly string[]) => ({ preferred_username: "alice", groups });
const statusOf = async (browser: Browser) => (await browser.send(WHOAMI)).status;
const auditOf = async () => {
  await harness.access.audit.close();
  const { items } = await harness.access.audit.read({ limit: 100 }, () => true);
  return items.map(({ action, by, via, filter }) => ({ action, by, via, filter }));
};

test("a user signs in with the provider, and has the role and scope of the groups", async () => {
  await provider.users({ alice: user("other", "demo", "billing") });
  const browser = new Browser(serve(ROLES));
  const page = await browser.signIn("alice", "objects?namespace=demo");
  expect(await page.text()).toContain(`content="0;url=${BASE}objects?namespace=demo"`);
  expect(page.status).toBe(200);
  expect(await (await browser.send(WHOAMI)).json()).toEqual({
    name: "oidc:alice",
    role: "operator",
    scope: { namespaces: ["demo", "billing"] },
    via: "oidc",
  });
  const attributes = (name: string, maxAge: number, site: string) =>
    new RegExp(`^${name}=[\\w.-]+; Max-Age=${maxAge}; Path=/; HttpOnly; SameSite=${site}$`);
  expect(browser.set[0]).toMatch(attributes("konverge_login", 600, "Lax"));
  expect(browser.set.at(-1)).toMatch(attributes("konverge_session", 8 * 3_600, "Strict"));
  const home = await (await browser.send("")).text();
  expect(home).toContain("&quot;name&quot;:&quot;oidc:alice&quot;");
  expect(home).toContain("&quot;isSignedIn&quot;:true");

  const { redis, prefix } = harness.queues;
  const keys = await redis.keys(`${prefix}:user-*`);
  const stored = await Promise.all(
    keys.map(async (key) => ({ key, hash: await redis.hgetall(key).catch(() => ({})) })),
  );
  const secret = browser.cookie("konverge_session")?.split(".").at(-1) ?? "";
  expect(secret).toHaveLength(43);
  expect(JSON.stringify(stored)).not.toContain(secret);
  expect(JSON.stringify(stored)).not.toContain("eyJ");
  expect(JSON.stringify(stored)).not.toContain("other");
  for (const key of keys) expect(await redis.pttl(key), key).toBeGreaterThan(0);
});

test("changes need a page of the same origin, and name the user as author", async () => {
  await provider.users({ alice: user("demo") });
  const browser = new Browser(serve(ROLES));
  await browser.signIn("alice");
  for (const headers of [
    {},
    { "sec-fetch-site": "cross-site" },
    { origin: "http://evil.example" },
  ]) {
    const refused = await browser.send("v1/reconciles", { body: RECONCILE, headers });
    expect(refused.status).toBe(403);
  }
  const made = await browser.send("v1/reconciles", { body: RECONCILE, headers: SAME_ORIGIN });
  expect(made.status).toBe(202);
  const body = {
    by: "somebody",
    reason: "maintenance",
    controller: "node-pool",
    namespace: "demo",
  };
  const paused = await browser.send("v1/pauses", { body, headers: SAME_ORIGIN });
  expect([paused.status, await paused.text()]).toEqual([
    200,
    expect.stringContaining("oidc:alice"),
  ]);
  const elsewhere = { ...RECONCILE, namespace: "billing" };
  const outside = await browser.send("v1/reconciles", { body: elsewhere, headers: SAME_ORIGIN });
  expect(outside.status).toBe(403);
  const entries = await auditOf();
  for (const action of ["session.create", "pause", "reconcile", "refused"] as const) {
    expect(entries).toContainEqual(
      expect.objectContaining({ action, by: "oidc:alice", via: "oidc" }),
    );
  }
});

test("a sign-out ends the session in every process, and names the page of the provider", async () => {
  await provider.users({ alice: user("staff") });
  const browser = new Browser(serve(ROLES));
  await browser.signIn("alice");
  const cookie = browser.cookie("konverge_session") ?? "";
  const other = new Browser(serve(ROLES));
  other.keep("konverge_session", cookie);
  expect(await statusOf(other)).toBe(200);
  const forged = await browser.send("auth/logout", {
    method: "POST",
    headers: { "sec-fetch-site": "cross-site" },
  });
  expect([forged.status, await statusOf(browser)]).toEqual([403, 200]);

  const response = await browser.send("auth/logout", { method: "POST", headers: SAME_ORIGIN });
  const { url } = (await response.json()) as { readonly url: string };
  expect(url.startsWith(`${provider.issuer}/session/end?`)).toBe(true);
  expect(new URL(url).searchParams.get("post_logout_redirect_uri")).toBe(BASE);
  expect(browser.cookie("konverge_session")).toBeUndefined();
  browser.keep("konverge_session", cookie);
  expect(await statusOf(browser)).toBe(401);
  await until("the other process notices", async () => (await statusOf(other)) === 401);
  const again = await browser.send("auth/logout", { method: "POST", headers: SAME_ORIGIN });
  expect(again.status).toBe(200);
  // The forged sign-out and the second one have ended no session.
  const by = { by: "oidc:alice", via: "oidc" };
  expect(await auditOf()).toEqual([
    { action: "session.end", ...by, filter: undefined },
    { action: "session.create", ...by, filter: "role: viewer, groups: staff" },
  ]);
});

test("the entry of a sign-in names the groups that gave the role, and no secret", async () => {
  await provider.users({ alice: user("other", "demo", "billing") });
  const browser = new Browser(serve(ROLES));
  await browser.signIn("alice");
  expect(await auditOf()).toEqual([
    {
      action: "session.create",
      by: "oidc:alice",
      via: "oidc",
      filter: "role: operator, groups: demo, billing",
    },
  ]);
  const lines: string[] = [];
  for await (const line of harness.access.audit.lines({})) lines.push(line);
  const text = lines.join("\n");
  expect(lines).toHaveLength(1);
  expect(text).not.toContain("other");
  for (const part of (browser.cookie("konverge_session") ?? "").split(".").slice(1)) {
    expect(text).not.toContain(part);
  }
});

test("a sign-in replaces the session of the browser, and the groups of all sessions of the user", async () => {
  await provider.users({ alice: user("platform") });
  const call = serve(ROLES);
  const [browser, second] = [new Browser(call), new Browser(call)];
  await browser.signIn("alice");
  const before = browser.cookie("konverge_session") ?? "";
  await browser.signIn("alice");
  expect(browser.cookie("konverge_session")).not.toBe(before);
  second.keep("konverge_session", before);
  expect(await statusOf(second)).toBe(401);

  await provider.users({ alice: user("staff") });
  await second.signIn("alice");
  const roleOf = async (one: Browser) =>
    ((await (await one.send(WHOAMI)).json()) as { readonly role: string }).role;
  expect(await roleOf(second)).toBe("viewer");
  await until(
    "the first session has the new groups",
    async () => (await roleOf(browser)) === "viewer",
  );

  await provider.users({ alice: user("other") });
  const third = new Browser(call);
  const page = await third.signIn("alice");
  expect(page.status).toBe(403);
  expect(await page.text()).toContain("The user &quot;alice&quot; is not in a group with a role");
  expect(await statusOf(third)).toBe(401);
  await until("the other sessions end", async () => (await statusOf(browser)) === 401);
  expect(await auditOf()).toContainEqual({
    action: "refused",
    by: "oidc:alice",
    via: "oidc",
    filter: "signIn: forbidden",
  });
});

test("a removed entry of the mapping ends its rights without a sign-in", async () => {
  await provider.users({ alice: user("platform", "staff") });
  const browser = new Browser(serve(ROLES));
  await browser.signIn("alice");
  const [viewers, strangers] = [ROLES.slice(3), [{ group: "another", role: "admin" }]].map(
    (roles) => new Browser(serve(roles)),
  );
  for (const [one, status, role] of [
    [viewers, 200, "viewer"],
    [strangers, 401, undefined],
  ] as const) {
    one?.keep("konverge_session", browser.cookie("konverge_session") ?? "");
    const response = await one?.send(WHOAMI);
    expect([response?.status, (await response?.json()) as object]).toEqual([
      status,
      expect.objectContaining(role === undefined ? { code: "unauthorized" } : { role }),
    ]);
  }
});

test("an event stream ends with the session", async () => {
  await provider.users({ alice: user("staff") });
  const browser = new Browser(serve(ROLES));
  await browser.signIn("alice");
  const stream = await browser.send("v1/events");
  expect(stream.status).toBe(200);
  await browser.send("auth/logout", { method: "POST", headers: SAME_ORIGIN });
  const reader = stream.body?.getReader();
  await until("the stream ends", async () => (await reader?.read())?.done === true);
});

test("a session ends after its time", async () => {
  const call = serve(ROLES);
  const id = `oidc.${"x".repeat(43)}`;
  const [short, long] = [new Browser(call), new Browser(call)];
  const { userSessions: sessions } = harness.access;
  const alice = { id, name: "alice", groups: ["staff"] };
  short.keep("konverge_session", await sessions.create(alice, 1_500));
  long.keep("konverge_session", await sessions.create(alice, 600_000));
  expect(await statusOf(long)).toBe(200);
  await until("the session ends", async () => (await statusOf(short)) === 401);
  expect(await statusOf(long)).toBe(200);
});

test("a user has at most 100 sessions", async () => {
  const { userSessions: sessions } = harness.access;
  const alice = { id: `oidc.${"x".repeat(43)}`, name: "alice", groups: ["staff"] };
  const first = await sessions.create(alice, 600_000);
  for (let count = 0; count < 100; count++) await sessions.create(alice, 600_001 + count);
  expect(await sessions.find(first)).toBeUndefined();
});

test("without the provider, a sign-in fails with 503, and sessions and tokens continue to work", async () => {
  await provider.users({ alice: user("staff") });
  const browser = new Browser(serve(ROLES));
  const late = await browser.authenticate("alice");
  const other = new Browser(serve(ROLES));
  await other.signIn("alice");
  const restarted = serve(ROLES);
  const fresh = new Browser(restarted);
  fresh.keep("konverge_session", other.cookie("konverge_session") ?? "");
  const restart = await provider.stop();
  const begun = await fresh.send("auth/login");
  expect([begun.status, begun.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await begun.text()).toContain("The OIDC provider is not available");
  expect((await browser.send(late)).status).toBe(503);
  expect([await statusOf(fresh), await statusOf(browser)]).toEqual([200, 401]);
  const token = await harness.token("ci");
  expect((await restarted("/v1/whoami", { token })).status).toBe(200);
  await restart();
  await provider.users({ alice: user("staff") });
  expect((await fresh.signIn("alice")).status).toBe(200);
});

test("a user who aborts at the provider is not signed in", async () => {
  const browser = new Browser(serve(ROLES));
  const { url, response } = await browser.open("auth/login");
  expect(response?.status).toBe(200);
  const page = await browser.open(`${url}/abort`);
  expect(page.response?.status).toBe(403);
  expect(await page.response?.text()).toContain("The provider rejected the login");
  expect(await statusOf(browser)).toBe(401);
});

test("every request needs a token or a session, also on loopback", async () => {
  const call = serve(ROLES);
  expect((await call("/v1/overview")).status).toBe(401);
  const page = await (await call("/", { headers: { accept: "text/html" } })).text();
  expect(page).toContain(`&quot;signIn&quot;:&quot;${new URL(provider.issuer).host}&quot;`);
  expect((await call("/auth/other", { headers: { accept: "text/html" } })).status).toBe(401);
});
