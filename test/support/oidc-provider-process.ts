/**
 * An OIDC provider as a process. Prints its issuer as JSON. `PUT /-/users` replaces its users: a JSON object with the claims
 * of each user by name. Its login form accepts any password.
 * The claims are in the response of the userinfo endpoint.
 * Environment: PORT (default: a free one), CLIENT_SECRET and REDIRECT_URL.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

// It prints warnings about its quick start.
console.info = () => undefined;
console.warn = () => undefined;
const { default: Provider } = await import("oidc-provider");

const { CLIENT_SECRET, REDIRECT_URL = "", PORT = "0" } = process.env;
let users: Record<string, object> = {};

const server = createServer();
await new Promise<void>((resolve) => server.listen(Number(PORT), "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

interface Context {
  readonly oidc: {
    readonly client: { readonly clientId: string };
    readonly session: { readonly accountId: string };
    readonly provider: InstanceType<typeof Provider>;
  };
}

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "konverge",
      client_secret: CLIENT_SECRET,
      redirect_uris: [REDIRECT_URL],
      post_logout_redirect_uris: [new URL("..", REDIRECT_URL).href],
    },
  ],
  claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
  cookies: { keys: ["a key of the test"] },
  async findAccount(_: unknown, id: string) {
    const claims = users[id];
    return claims && { accountId: id, claims: () => ({ sub: id, ...claims }) };
  },
  // Without a page that asks the user for consent.
  async loadExistingGrant({
    oidc: {
      client,
      session,
      provider: { Grant },
    },
  }: Context) {
    const grant = new Grant({ accountId: session.accountId, clientId: client.clientId });
    grant.addOIDCScope("openid profile groups");
    await grant.save();
    return grant;
  },
});
const answer = provider.callback();

server.on("request", (request, response) => {
  if (request.url !== "/-/users") return answer(request, response);
  void (async () => {
    users = (await json(request)) as typeof users;
    response.end();
  })();
});
console.log(JSON.stringify({ issuer }));
