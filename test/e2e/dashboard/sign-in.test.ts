import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { beforeAll, expect, test } from "vitest";
import { useQueues } from "../../integration/queue/queue-harness.ts";
import { useOidcProvider } from "../../support/use-oidc-provider.ts";
import { findBarriers, useChromium } from "./chromium.ts";
import { startOwnApi } from "./own-api.ts";

const harness = useQueues();
const open = useChromium();
// Another site than that of the provider, 127.0.0.1.
let base = "";
beforeAll(async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://localhost:${(server.address() as AddressInfo).port}/`;
  await new Promise((resolve) => server.close(resolve));
});
const provider = useOidcProvider(() => `${base}auth/callback`);

test("a user signs in, returns to the page that was opened, and signs out", async (context) => {
  const { page, troubles } = await open(context);
  await provider.users({ alice: { preferred_username: "alice", groups: ["staff"] } });
  await startOwnApi(harness, {
    KONVERGE_API_PORT: new URL(base).port,
    KONVERGE_OIDC_ISSUER: provider.issuer,
    KONVERGE_OIDC_CLIENT_ID: "konverge",
    KONVERGE_OIDC_CLIENT_SECRET_FILE: provider.secretPath,
    KONVERGE_OIDC_REDIRECT_URL: `${base}auth/callback`,
    KONVERGE_OIDC_SCOPES: "openid profile groups",
    KONVERGE_OIDC_PROVIDER_NAME: "Example ID",
    KONVERGE_OIDC_ROLES: '[{"group":"staff","role":"viewer"}]',
  });
  await page.goto(`${base}workers?sort=host`);
  const signIn = page.getByRole("button", { name: "Sign in with Example ID" });
  await signIn.waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await signIn.click();
  await page.locator('[name="login"]').fill("alice");
  await page.locator('[name="password"]').fill("any");
  await page.locator('[type="submit"]').click();
  await page.getByRole("heading", { name: "Workers" }).waitFor();
  expect(page.url()).toBe(`${base}workers?sort=host`);
  await page.getByRole("button", { name: "Sign out alice" }).click();
  await page.waitForURL((url) => url.href.startsWith(`${provider.issuer}/session/end`));
  await page.goto(base);
  await signIn.waitFor();
  expect(troubles).toEqual([]);
});
