import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadKubeCredentials } from "./kube-credentials.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "kubeconfig-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

interface Parts {
  readonly name?: string;
  readonly server?: string;
  readonly user?: object;
  readonly cluster?: object;
}
const config = ({
  name = "main",
  server = "https://api.example.com:6443/",
  user = {},
  cluster = {},
}: Parts = {}): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [{ name, cluster: { server, ...cluster } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: `${name}-ns` } }],
  });
const write = (file: string, text: string): string => {
  const path = join(directory, file);
  writeFileSync(path, text);
  return path;
};
const load = (parts: Parts) => loadKubeCredentials({ kubeconfigText: config(parts), env: {} });

const data = (text: string): string => Buffer.from(text).toString("base64");

describe("finding the kubeconfig", () => {
  test("merges a list of files, the first entry of a name wins, missing files are skipped", () => {
    const env = {
      KUBECONFIG: [
        join(directory, "absent"),
        write("a", config({ name: "a" })),
        write("b", config({ name: "b" })),
      ].join(delimiter),
    };
    expect(loadKubeCredentials({ env })).toMatchObject({
      context: "a",
      namespace: "a-ns",
      server: "https://api.example.com:6443",
    });
    expect(loadKubeCredentials({ env, context: "b" })).toMatchObject({ context: "b" });
  });
  test("then looks in the home directory", () => {
    mkdirSync(join(directory, ".kube"));
    write(".kube/config", config({ name: "home" }));
    expect(loadKubeCredentials({ env: { HOME: directory } }).context).toBe("home");
  });
  test.each<[string, () => unknown, string]>([
    ["nothing anywhere", () => loadKubeCredentials({ env: { HOME: directory } }), "set KUBECONFIG"],
    [
      "a missing file",
      () => loadKubeCredentials({ kubeconfigPath: "/absent/file" }),
      "/absent/file",
    ],
    [
      "a missing context",
      () => loadKubeCredentials({ kubeconfigText: config(), context: "other" }),
      'no context "other"; available: main',
    ],
    ["no server URL", () => load({ server: "api.example.com" }), 'server "api.example.com"'],
    [
      "no kubeconfig at all",
      () => loadKubeCredentials({ kubeconfigText: "- a" }),
      "not a kubeconfig",
    ],
    [
      "an unknown auth provider",
      () => load({ user: { "auth-provider": { name: "magic" } } }),
      'auth-provider "magic"',
    ],
    [
      "an impersonation with other fields than a name",
      () => load({ user: { as: "jane", "as-groups": ["ops"], "as-uid": "7" } }),
      'as-groups, as-uid of user "main"',
    ],
  ])("names %s", (_title, run, message) => {
    expect(run).toThrow(message);
  });
  test.each([
    ["a line", "{token: hunter2, client-key-data: ["],
    ["an alias", "password: *hunter2"],
    ["a tag", "password: !hunter2"],
    ["a tag with a handle", "password: !hunter2!a b"],
    ["a tag with a bracket", "password: !a>hunter2 b"],
  ])("does not quote %s of invalid YAML, which may be a secret", (_title, user) => {
    const text = `users:\n- name: a\n  user:\n    ${user}`;
    expect(() => loadKubeCredentials({ kubeconfigText: text })).toThrow(
      expect.objectContaining({
        code: "invalid_config",
        message: expect.not.stringContaining("hunter2"),
      }),
    );
  });
});

describe("credentials", () => {
  test("a token, with impersonation", async () => {
    const { headers } = await load({ user: { token: "secret", as: "jane" } }).authorize();
    expect(headers).toEqual({ Authorization: "Bearer secret", "Impersonate-User": "jane" });
  });
  test("an unsupported impersonation affects only its own user", () => {
    const other = { name: "other", user: { token: "t", "as-groups": ["ops"] } };
    const users = [other, { name: "main", user: {} }];
    const text = JSON.stringify({ ...(JSON.parse(config()) as object), users });
    expect(loadKubeCredentials({ kubeconfigText: text }).context).toBe("main");
    const none = { token: "t", as: "jane", "as-groups": [], "as-user-extra": {} };
    expect(load({ user: none }).context).toBe("main");
  });
  test("a name and a password", async () => {
    const { headers } = await load({ user: { username: "a", password: "b" } }).authorize();
    expect(headers).toEqual({ Authorization: `Basic ${Buffer.from("a:b").toString("base64")}` });
  });
  test("trims a token file, finds it beside its kubeconfig, and reads it again after a 401", async () => {
    const file = write("config", config({ user: { tokenFile: "token" } }));
    write("token", "one\n");
    const credentials = loadKubeCredentials({ kubeconfigPath: file, env: {} });
    expect((await credentials.authorize()).headers).toEqual({ Authorization: "Bearer one" });
    write("token", "two\n");
    expect((await credentials.authorize()).headers).toEqual({ Authorization: "Bearer one" });
    credentials.forget();
    expect((await credentials.authorize()).headers).toEqual({ Authorization: "Bearer two" });
  });
  test("returns the same TLS object until something changes", async () => {
    const credentials = load({
      cluster: { "certificate-authority-data": data("ca"), "tls-server-name": "inner" },
      user: { "client-certificate-data": data("cert"), "client-key-data": data("key") },
    });
    const { tls } = await credentials.authorize();
    expect(tls).toEqual({
      ca: Buffer.from("ca"),
      cert: Buffer.from("cert"),
      key: Buffer.from("key"),
      servername: "inner",
    });
    expect((await credentials.authorize()).tls).toBe(tls);
  });
  test.each(["proxy:3128", "10.0.0.1:3128", "localhost:3128", "ftp://proxy", "http://"])(
    "rejects the proxy-url %s",
    (proxyUrl) => {
      expect(() => load({ cluster: { "proxy-url": proxyUrl } })).toThrow(
        'the proxy-url of cluster "main"',
      );
    },
  );

  test("takes the proxy from the cluster, or else from the environment", () => {
    const env = { HTTPS_PROXY: "http://outer:1" };
    expect(loadKubeCredentials({ kubeconfigText: config(), env }).proxyUrl).toBe("http://outer:1");
    const kubeconfigText = config({ cluster: { "proxy-url": "http://own:2" } });
    expect(loadKubeCredentials({ kubeconfigText, env }).proxyUrl).toBe("http://own:2");
  });
});

/** A plugin that records each run and its input. */
const plugin = (status: string, exit = 0): Parts => {
  const script = `#!/bin/sh
echo run >> "${directory}/runs"
printf %s "$KUBERNETES_EXEC_INFO" > "${directory}/info"
echo 'first line of the trouble
hunter2' >&2
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":${status}}'
exit ${exit}
`;
  chmodSync(write("plugin", script), 0o755);
  return {
    user: {
      exec: { apiVersion: "client.authentication.k8s.io/v1", command: join(directory, "plugin") },
    },
  };
};
const runs = () => readFileSync(join(directory, "runs"), "utf8").split("\n").length - 1;

describe("exec plugins", () => {
  test("run once for concurrent calls, with KUBERNETES_EXEC_INFO", async () => {
    const credentials = load(plugin('{"token":"from-plugin"}'));
    const all = await Promise.all([
      credentials.authorize(),
      credentials.authorize(),
      credentials.authorize(),
    ]);
    await credentials.authorize();
    expect(all.map(({ headers }) => headers["Authorization"])).toEqual(
      Array(3).fill("Bearer from-plugin"),
    );
    expect(runs()).toBe(1);
    expect(JSON.parse(readFileSync(join(directory, "info"), "utf8"))).toMatchObject({
      kind: "ExecCredential",
      spec: { interactive: false },
    });
  });
  test("run again when the credential has expired, and after a 401", async () => {
    let nowMs = 0;
    const loadAt = (parts: Parts) =>
      loadKubeCredentials({ kubeconfigText: config(parts), env: {} }, () => nowMs);
    const expired = loadAt(plugin('{"token":"a","expirationTimestamp":"2020-01-01T00:00:00Z"}'));
    await expired.authorize();
    nowMs += 1_000;
    await expired.authorize();
    expect(runs()).toBe(2);
    const fresh = loadAt(plugin('{"token":"a"}'));
    await fresh.authorize();
    nowMs += 1_000;
    fresh.forget();
    await fresh.authorize();
    expect(runs()).toBe(4);
  });
  test("can return a client certificate", async () => {
    const { tls } = await load(
      plugin('{"clientCertificateData":"CERT","clientKeyData":"KEY"}'),
    ).authorize();
    expect(tls).toEqual({ cert: "CERT", key: "KEY" });
  });
  test("of an auth provider: a failure does not quote the output, which may be the credential", async () => {
    const command = join(directory, "plugin");
    chmodSync(write("plugin", "#!/bin/sh\necho hunter2\n"), 0o755);
    const user = { "auth-provider": { name: "exec", config: { exec: { command } } } };
    await expect(load({ user }).authorize()).rejects.toMatchObject({
      code: "kube_unreachable",
      message: `no credentials for user "main" by plugin "${command}": the output is not JSON`,
    });
  });
  test("report a failure with the first line of its output only", async () => {
    const failed = load(plugin("{}", 3)).authorize();
    await expect(failed).rejects.toMatchObject({
      code: "kube_unreachable",
      message: expect.stringMatching(/plugin ".*plugin": first line of the trouble$/),
    });
  });
});
