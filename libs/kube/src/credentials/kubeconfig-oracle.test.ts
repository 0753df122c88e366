import { defined } from "@konverge/core";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { KubeConfig, type User } from "@kubernetes/client-node";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { loadKubeCredentials, type KubeCredentials } from "./kube-credentials.ts";

/** What client-node sends to which server, by its own loader. */
interface Expected {
  readonly server: string;
  readonly namespace: string | undefined;
  readonly proxyUrl: string | undefined;
  readonly headers: Record<string, string>;
  readonly tls: Record<string, unknown>;
}

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "kubeconfig-oracle-"));
  writeFileSync(join(directory, "token"), "token-of-file");
  writeFileSync(join(directory, "pem"), "a certificate");
});
afterAll(() => rmSync(directory, { recursive: true }));

const base64 = (text: string) => Buffer.from(text).toString("base64");
const word = fc.stringMatching(/^[a-z][a-z0-9]{0,6}$/);
const content = fc.string({ minLength: 1, maxLength: 12 }).map(base64);
/** Given as data or as a file, absolute or beside the kubeconfig. */
const material = (name: string) =>
  fc.oneof(
    fc.constant({}),
    content.map((data) => ({ [`${name}-data`]: data })),
    fc.constantFrom("pem", "./pem").map((file) => ({ [name]: file })),
    fc.constant(null).map(() => ({ [name]: join(directory, "pem") })),
  );
const merged = (...parts: fc.Arbitrary<object>[]) =>
  fc.tuple(...parts).map((all): object => Object.assign({}, ...all));
const optional = (field: string, value: fc.Arbitrary<unknown>) =>
  fc
    .option(value, { nil: undefined })
    .map((found) => (found === undefined ? {} : { [field]: found }));

const cluster = merged(
  fc
    .record({
      scheme: fc.constantFrom("http", "https"),
      host: fc.constantFrom("api.example.com", "10.0.0.1", "[::1]"),
      rest: fc.constantFrom("", "/", ":6443", ":6443/", "/k8s/clusters/c-1", "/k8s/clusters/c-1/"),
    })
    .map(({ scheme, host, rest }) => ({ server: `${scheme}://${host}${rest}` })),
  material("certificate-authority"),
  optional("insecure-skip-tls-verify", fc.boolean()),
  optional("tls-server-name", word),
  optional(
    "proxy-url",
    word.map((name) => `http://${name}:3128`),
  ),
);
/** client-node rejects an http server without this option. */
const accepted = (entry: object): object =>
  (entry as { server: string }).server.startsWith("http:")
    ? { ...entry, "insecure-skip-tls-verify": true }
    : entry;
const user = merged(
  fc.oneof(
    fc.constant({}),
    word.map((token) => ({ token })),
    fc.record({ username: word, password: word }),
    fc.constant({ "auth-provider": { name: "tokenFile", config: { tokenFile: "TOKEN" } } }),
  ),
  material("client-certificate"),
  material("client-key"),
  optional("as", word),
);
const names = fc.uniqueArray(word, { minLength: 1, maxLength: 4 });
const kubeconfig = names.chain((all) =>
  fc
    .record({
      clusters: fc.tuple(...all.map(() => cluster.map(accepted))),
      users: fc.tuple(...all.map(() => user)),
      contexts: fc.tuple(
        ...all.map(() =>
          merged(
            fc.record({ cluster: fc.constantFrom(...all), user: fc.constantFrom(...all) }),
            optional("namespace", word),
          ),
        ),
      ),
      current: fc.constantFrom(...all),
    })
    .map(({ clusters, users, contexts, current }) => ({
      clusters: all.map((name, n) => ({ name, cluster: clusters[n] ?? {} })),
      users: all.map((name, n) => ({ name, user: users[n] ?? {} })),
      contexts: all.map((name, n) => ({ name, context: contexts[n] ?? {} })),
      "current-context": current,
    })),
);

const write = (name: string, config: object): string => {
  const file = join(directory, name);
  const text = JSON.stringify(config).replaceAll(
    '"TOKEN"',
    JSON.stringify(join(directory, "token")),
  );
  writeFileSync(file, text);
  return file;
};

async function expectedOf(config: KubeConfig): Promise<Expected> {
  const options: Record<string, unknown> = {};
  await config.applyToHTTPSOptions(options);
  const { headers = {}, auth, ca, cert, key, servername, rejectUnauthorized } = options;
  const found = config.getCurrentCluster();
  const context = config.getContextObject(config.getCurrentContext());
  const basic = typeof auth === "string" ? { Authorization: `Basic ${base64(auth)}` } : {};
  return {
    server: (found?.server ?? "").replace(/\/$/, ""),
    namespace: context?.namespace,
    proxyUrl: found?.proxyUrl,
    headers: { ...basic, ...(headers as Record<string, string>) },
    tls: Object.fromEntries(
      Object.entries({ ca, cert, key, servername, rejectUnauthorized }).filter(
        ([, value]) => value !== undefined,
      ),
    ),
  };
}

async function oursOf(credentials: KubeCredentials): Promise<Expected> {
  const { headers, tls } = await credentials.authorize();
  const { server, namespace, proxyUrl } = credentials;
  return { server, namespace, proxyUrl, headers, tls: { ...tls } };
}

test("loads a kubeconfig as client-node does, from a file and from a KubeConfig", async () => {
  await fc.assert(
    fc.asyncProperty(kubeconfig, async (config) => {
      const file = write("config", config);
      const kubeConfig = new KubeConfig();
      kubeConfig.loadFromFile(file);
      const expected = await expectedOf(kubeConfig);
      expect(await oursOf(loadKubeCredentials({ kubeconfigPath: file, env: {} }))).toEqual(
        expected,
      );
      expect(await oursOf(loadKubeCredentials({ kubeConfig, env: {} }))).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

test("merges the files of KUBECONFIG as client-node does", async () => {
  await fc.assert(
    fc.asyncProperty(kubeconfig, fc.infiniteStream(fc.boolean()), async (config, inFirst) => {
      const { clusters, users, contexts, ...rest } = config;
      const split = (entries: readonly object[]) =>
        Object.groupBy(entries, () => (inFirst.next().value === true ? "first" : "second"));
      const parts = { clusters: split(clusters), users: split(users), contexts: split(contexts) };
      const part = (which: "first" | "second") => ({
        clusters: parts.clusters[which] ?? [],
        users: parts.users[which] ?? [],
        contexts: parts.contexts[which] ?? [],
      });
      const files = [
        write("first", { ...part("first"), ...rest }),
        write("second", { ...part("second"), "current-context": "absent" }),
      ];
      const KUBECONFIG = files.join(delimiter);
      vi.stubEnv("KUBECONFIG", KUBECONFIG);
      const kubeConfig = new KubeConfig();
      kubeConfig.loadFromDefault(undefined, true);
      vi.unstubAllEnvs();
      const ours = loadKubeCredentials({ env: { KUBECONFIG } });
      expect(await oursOf(ours)).toEqual(await expectedOf(kubeConfig));
    }),
    { numRuns: 100 },
  );
});

test("uses the authenticators that were added to a KubeConfig", async () => {
  const kubeConfig = new KubeConfig();
  kubeConfig.addAuthenticator({
    isAuthProvider: ({ name }: User) => name === "main",
    applyAuthentication: async (_user, options) => {
      Object.assign(options, { headers: { Authorization: "Custom scheme" }, cert: "C", key: "K" });
    },
  });
  kubeConfig.loadFromClusterAndUser(
    { name: "main", server: "https://127.0.0.1:1", skipTLSVerify: false },
    { name: "main" },
  );
  expect(await loadKubeCredentials({ kubeConfig, env: {} }).authorize()).toEqual({
    headers: { Authorization: "Custom scheme" },
    tls: { cert: "C", key: "K" },
  });
});

test.each([
  ["without a context", new KubeConfig(), undefined, "has no current context"],
  ["with another context", new KubeConfig(), "other", 'context "other" is not the current context'],
])("rejects a KubeConfig %s", (_what, kubeConfig, context, message) => {
  const options = { kubeConfig, ...defined({ context }) };
  expect(() => loadKubeCredentials(options)).toThrow(message);
});

test("an auth provider is left to client-node, which is loaded for it", async () => {
  const provider = { name: "gcp", config: { "access-token": "from-gcp" } };
  const file = write("provider", {
    clusters: [{ name: "a", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "a", user: { "auth-provider": provider } }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    "current-context": "a",
  });
  const { headers } = await loadKubeCredentials({ kubeconfigPath: file, env: {} }).authorize();
  expect(headers).toEqual({ Authorization: "Bearer from-gcp" });
});
