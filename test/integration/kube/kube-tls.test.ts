import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server,
  type Socket,
} from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import {
  createServer as createTlsServer,
  getCACertificates,
  setDefaultCACertificates,
  type TLSSocket,
} from "node:tls";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  onTestFinished,
  test,
  vi,
} from "vitest";
import { createCertificateAuthority } from "./certificate-authority.ts";
import { sendJson, startWireServer, watchfulGate, type WireServer } from "./kube-wire-server.ts";
import { until } from "../../support/until.ts";

const target = { namespace: "n", name: "a" };
const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { ...target, uid: "u" } };
const authority = createCertificateAuthority();
/** Called for each state of the credentials. */
const CALLS = 10;

interface Seen {
  readonly token: string | undefined;
  /** Common name of the client's certificate. */
  readonly client: string | undefined;
}

let folder: string;
let server: WireServer;
/** TLS connections that were opened, and the requests on them. */
let handshakes = 0;
let seen: Seen[] = [];
let skewMs = 0;

beforeAll(async () => {
  const { cert, key } = authority.issue("api", ["127.0.0.1", "api.internal"]);
  // As in kube-apiserver: client certificates are optional.
  const mayAuthenticate = { requestCert: true, rejectUnauthorized: false };
  const tls = createServer({ cert, key, ca: authority.ca, ...mayAuthenticate });
  tls.on("secureConnection", () => {
    handshakes += 1;
  });
  server = await startWireServer(({ request, response }) => {
    const client = (request.socket as TLSSocket).getPeerCertificate().subject?.CN;
    const token = request.headers.authorization?.replace("Bearer ", "");
    seen.push({ token, client: typeof client === "string" ? client : undefined });
    sendJson(response, 200, object);
  }, tls);
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "konverge-tls-"));
  handshakes = 0;
  seen = [];
  skewMs = 0;
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const write = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
/** A later time, for code that reads the clock. */
function pass(ms: number): void {
  skewMs += ms;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });
  if (skewMs > ms) return;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + skewMs);
}
function open(options: Parameters<typeof loadKubeCredentials>[0]): KubeClient {
  const client = createKubeClient({
    credentials: loadKubeCredentials(options),
    gate: watchfulGate().gate,
    userAgent: "konverge-test/1",
  });
  onTestFinished(() => client.close());
  return client;
}
async function call(client: KubeClient): Promise<Seen[]> {
  const from = seen.length;
  for (let n = 0; n < CALLS; n++) await client.get(ConfigMap, target);
  return seen.slice(from);
}
const all = (value: Partial<Seen>) =>
  Array.from({ length: CALLS }, () => expect.objectContaining(value) as Seen);
// undici reuses a socket only after a turn of the event loop, and opens another one until then.
const KEPT = 2;

const kubeconfig = (user: object, address = server.url) =>
  JSON.stringify({
    "current-context": "main",
    clusters: [{ name: "main", cluster: { server: address, "certificate-authority": "ca.crt" } }],
    users: [{ name: "main", user }],
    contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
  });

test("in a Pod: a rotated token is sent within a minute, over the existing connections", async () => {
  const { hostname, port } = new URL(server.url);
  write("ca.crt", authority.ca);
  write("token", "first\n");
  const client = open({
    serviceAccount: folder,
    env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port },
  });
  expect(await call(client)).toEqual(all({ token: "first" }));
  write("token", "second\n");
  pass(61_000);
  expect(await call(client)).toEqual(all({ token: "second" }));
  expect(handshakes).toBeLessThanOrEqual(KEPT);
});

test("an exec plugin runs again when its credential has expired, and connections are kept", async () => {
  const answer = (token: string, expiresInMs: number) =>
    write(
      "answer",
      JSON.stringify({
        status: { token, expirationTimestamp: new Date(Date.now() + expiresInMs).toISOString() },
      }),
    );
  write("ca.crt", authority.ca);
  const command = write("plugin", `#!/bin/sh\necho run >> ${folder}/runs\ncat ${folder}/answer\n`);
  chmodSync(command, 0o755);
  const client = open({
    kubeconfigPath: write("config", kubeconfig({ exec: { command: "./plugin" } })),
    env: {},
  });
  answer("first", 600_000);
  expect(await call(client)).toEqual(all({ token: "first" }));
  answer("second", 1_200_000);
  expect(await call(client)).toEqual(all({ token: "first" }));
  pass(601_000);
  expect(await call(client)).toEqual(all({ token: "second" }));
  expect(handshakes).toBeLessThanOrEqual(KEPT);
});

test("a rotated client certificate gets new connections, and the old ones are closed", async () => {
  write("ca.crt", authority.ca);
  const put = (name: string, parts: readonly ("cert" | "key")[]) => {
    const pair = authority.issue(name);
    for (const part of parts) write(`client.${part}`, pair[part]);
    return pair;
  };
  put("first", ["cert", "key"]);
  const user = { "client-certificate": "client.cert", "client-key": "client.key" };
  const client = open({ kubeconfigPath: write("config", kubeconfig(user)), env: {} });
  expect(await call(client)).toEqual(all({ client: "first" }));

  // A rotation writes two files. They do not match for a moment, and the old pair stays in use.
  const { key } = put("second", ["cert"]);
  pass(61_000);
  expect(await call(client)).toEqual(all({ client: "first" }));
  expect(handshakes).toBeLessThanOrEqual(KEPT);
  write("client.key", key);
  pass(2_000);
  expect(await call(client)).toEqual(all({ client: "second" }));
  expect(handshakes).toBeLessThanOrEqual(2 * KEPT);
  await until("the old ones are closed", () => server.sockets.size <= KEPT);
});

test("a plugin's certificate is renewed in the same way", async () => {
  write("ca.crt", authority.ca);
  const command = write("plugin", `#!/bin/sh\ncat ${folder}/answer\n`);
  chmodSync(command, 0o755);
  const answer = (name: string, expiresInMs: number) => {
    const { cert, key } = authority.issue(name);
    const expirationTimestamp = new Date(Date.now() + expiresInMs).toISOString();
    const status = { clientCertificateData: cert, clientKeyData: key, expirationTimestamp };
    write("answer", JSON.stringify({ status }));
  };
  const client = open({
    kubeconfigPath: write("config", kubeconfig({ exec: { command: "./plugin" } })),
    env: {},
  });
  answer("first", 600_000);
  expect(await call(client)).toEqual(all({ client: "first" }));
  answer("second", 1_200_000);
  pass(601_000);
  expect(await call(client)).toEqual(all({ client: "second" }));
  expect(handshakes).toBeLessThanOrEqual(2 * KEPT);
});

test("KUBECONFIG lists files: cluster, user and context may come from three, and the first entry of a name wins", async () => {
  write("ca.crt", authority.ca);
  const { contexts, clusters, users, ...rest } = JSON.parse(
    kubeconfig({ token: "listed" }),
  ) as Record<"contexts" | "clusters" | "users", unknown>;
  const files = [
    write("contexts", JSON.stringify({ contexts, ...rest })),
    write("absent-soon", JSON.stringify({ users })),
    write("clusters", JSON.stringify({ clusters })),
    // Ignored: the name exists already.
    write("others", kubeconfig({ token: "other" }, "https://127.0.0.1:1")),
  ];
  const client = open({ env: { KUBECONFIG: [...files, join(folder, "none")].join(delimiter) } });
  expect(await call(client)).toEqual(all({ token: "listed" }));
});

const proxies: [string, (onSocket: (socket: Socket) => void) => Server][] = [
  ["http", (onSocket) => createTcpServer(onSocket)],
  [
    "https",
    (onSocket) => {
      // An authority that the process trusts, for a proxy without a name.
      const issuer = createCertificateAuthority();
      const before = getCACertificates();
      setDefaultCACertificates([...before, issuer.ca]);
      onTestFinished(() => setDefaultCACertificates(before));
      return createTlsServer(issuer.issue("proxy", ["127.0.0.1"]), onSocket);
    },
  ],
];
test.each(proxies)(
  "HTTPS_PROXY by %s and IP address: calls share tunnels through the proxy, and NO_PROXY bypasses it",
  async (protocol, listen) => {
    const { port } = new URL(server.url);
    const requested: string[] = [];
    const proxy = listen((socket) => {
      socket.once("data", (head) => {
        requested.push(head.toString().split(" HTTP", 1)[0] ?? "");
        const upstream = connect(Number(port), "127.0.0.1", () => {
          socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
          socket.pipe(upstream).pipe(socket);
        });
        for (const end of [socket, upstream]) end.on("error", () => upstream.destroy());
      });
    });
    await new Promise<void>((resolve) => {
      proxy.listen(0, "127.0.0.1", resolve);
    });
    onTestFinished(() => void proxy.close());
    write("ca.crt", authority.ca);
    const path = write("config", kubeconfig({ token: "far" }, `https://api.internal:${port}`));
    const HTTPS_PROXY = `${protocol}://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const client = open({ kubeconfigPath: path, env: { HTTPS_PROXY } });
    expect(await call(client)).toEqual(all({ token: "far" }));
    expect(new Set(requested)).toEqual(new Set([`CONNECT api.internal:${port}`]));
    expect(requested.length).toBeLessThanOrEqual(KEPT);
    expect(handshakes).toBe(requested.length);
    const around = loadKubeCredentials({
      kubeconfigPath: path,
      env: { HTTPS_PROXY, NO_PROXY: ".internal" },
    });
    expect(around.proxyUrl).toBeUndefined();
  },
);

test("rejects a server with an untrusted certificate before sending a token", async () => {
  write("ca.crt", createCertificateAuthority().ca);
  const client = open({
    kubeconfigPath: write("config", kubeconfig({ token: "secret" })),
    env: {},
  });
  await expect(client.get(ConfigMap, target)).rejects.toMatchObject({ code: "kube_unreachable" });
  expect(seen).toEqual([]);
});
