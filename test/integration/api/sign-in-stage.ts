import { readSettings, readSignInSettings, type SignInSettings } from "@konverge/contracts";
import type { Call } from "./api-harness.ts";

/** The address of the dashboard. `Call` reaches it without a server. */
export const BASE = "http://localhost:7070/";
const ORIGIN = new URL(BASE).origin;

export function signInSettings(
  issuer: string,
  secretPath: string,
  {
    roles,
    env = {},
  }: { readonly roles: readonly object[]; readonly env?: Readonly<Record<string, string>> },
): SignInSettings {
  const settings = readSignInSettings(
    readSettings({
      env: {
        KONVERGE_OIDC_ISSUER: issuer,
        KONVERGE_OIDC_CLIENT_ID: "konverge",
        KONVERGE_OIDC_CLIENT_SECRET_FILE: secretPath,
        KONVERGE_OIDC_REDIRECT_URL: `${BASE}auth/callback`,
        KONVERGE_OIDC_SCOPES: "openid profile groups",
        KONVERGE_OIDC_ROLES: JSON.stringify(roles),
        ...env,
      },
    }),
  );
  if (settings === undefined) throw new Error("no settings");
  return settings;
}

/** A browser: it keeps cookies and follows redirects. */
export class Browser {
  readonly #call: Call;
  /** By origin and name. */
  readonly #cookies = new Map<string, string>();
  /** The cookies that the dashboard has set, with their attributes. */
  readonly set: string[] = [];

  constructor(call: Call) {
    this.#call = call;
  }

  cookie(name: string, origin: string = ORIGIN): string | undefined {
    return this.#cookies.get(`${origin} ${name}`);
  }

  keep(name: string, value: string, origin: string = ORIGIN): void {
    this.#cookies.set(`${origin} ${name}`, value);
  }

  /** Sends one request. */
  async send(
    url: string,
    given: {
      readonly method?: string;
      readonly form?: Readonly<Record<string, string>>;
      readonly headers?: Record<string, string>;
      readonly body?: unknown;
    } = {},
  ): Promise<Response> {
    const { origin, pathname, search } = new URL(url, BASE);
    const cookie = [...this.#cookies]
      .filter(([key]) => key.startsWith(`${origin} `))
      .map(([key, value]) => `${key.slice(origin.length + 1)}=${value}`)
      .join("; ");
    const headers = { ...(cookie === "" ? {} : { cookie }), ...given.headers };
    const { method = given.form === undefined && given.body === undefined ? "GET" : "POST" } =
      given;
    const response =
      origin === ORIGIN
        ? await this.#call(`${pathname}${search}`, { method, headers, body: given.body })
        : await fetch(`${origin}${pathname}${search}`, {
            method,
            headers,
            redirect: "manual",
            ...(given.form === undefined ? {} : { body: new URLSearchParams(given.form) }),
          });
    for (const line of response.headers.getSetCookie()) {
      if (origin === ORIGIN) this.set.push(line);
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(line))
        this.#cookies.delete(`${origin} ${name}`);
      else this.#cookies.set(`${origin} ${name}`, value);
    }
    return response;
  }

  /** Follows redirects until a page, or until the callback with `untilCallback`. */
  async open(
    url: string,
    given: Parameters<Browser["send"]>[1] & { readonly untilCallback?: boolean } = {},
  ): Promise<{ readonly url: string; readonly response: Response | undefined }> {
    let [at, sent] = [new URL(url, BASE).href, given];
    for (let hop = 0; hop < 20; hop++) {
      if (given.untilCallback === true && at.startsWith(`${BASE}auth/callback`))
        return { url: at, response: undefined };
      const response = await this.send(at, sent);
      const next = response.headers.get("location");
      if (next === null) return { url: at, response };
      at = new URL(next, at).href;
      sent = {};
    }
    throw new Error(`too many redirects to ${at}`);
  }

  /** Logs in at the provider. Returns the address of the callback, which is not opened. */
  async authenticate(user: string, returnTo = ""): Promise<string> {
    const begun = await this.open(`auth/login?${new URLSearchParams({ returnTo }).toString()}`, {
      untilCallback: true,
    });
    if (begun.response === undefined) return begun.url;
    if (begun.response.status !== 200) throw new Error(await begun.response.text());
    const form = { prompt: "login", login: user, password: "any" };
    const { url, response } = await this.open(begun.url, { form, untilCallback: true });
    if (response !== undefined) throw new Error(await response.text());
    return url;
  }

  /** Signs in. Returns the last page. */
  async signIn(user: string, returnTo = ""): Promise<Response> {
    return await this.send(await this.authenticate(user, returnTo));
  }
}
