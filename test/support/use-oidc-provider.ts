import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { Child } from "./child.ts";

export interface Users {
  readonly [name: string]: Readonly<Record<string, unknown>>;
}

/** A folder with the client secret, which the tests of a file share. */
export function useClientSecret(): { readonly path: string; readonly secret: string } {
  const folder = mkdtempSync(join(tmpdir(), "konverge-oidc-"));
  const [path, secret] = [join(folder, "secret"), randomBytes(24).toString("base64url")];
  writeFileSync(path, `${secret}\n`);
  afterAll(() => rmSync(folder, { recursive: true }));
  return { path, secret };
}

/** Starts `oidc-provider` as a process for the tests of a file. */
export function useOidcProvider(redirectUrl: () => string) {
  const { path, secret } = useClientSecret();
  const provider: { issuer: string; child: Child | undefined } = { issuer: "", child: undefined };
  const start = async (port = "0") => {
    const child = new Child(["test/support/oidc-provider-process.ts"], {
      env: { CLIENT_SECRET: secret, REDIRECT_URL: redirectUrl(), PORT: port },
    });
    provider.child = child;
    ({ issuer: provider.issuer } = JSON.parse(await child.ready) as { readonly issuer: string });
  };
  beforeAll(() => start());
  afterAll(() => provider.child?.kill());
  return {
    secretPath: path,
    get issuer() {
      return provider.issuer;
    },
    /** Replaces the users of the provider. */
    async users(users: Users) {
      const body = JSON.stringify(users);
      expect((await fetch(`${provider.issuer}/-/users`, { method: "PUT", body })).ok).toBe(true);
    },
    /** Stops the provider. Returns the function that starts it again, at the latest after the test. */
    async stop() {
      const { port } = new URL(provider.issuer);
      await provider.child?.kill();
      let isStopped = true;
      const restart = async () => {
        if (isStopped) await start(port);
        isStopped = false;
      };
      onTestFinished(restart);
      return restart;
    },
  };
}
