import { expect, test } from "vitest";
import { loadKubeCredentials } from "./kube-credentials.ts";

const SERVER = "https://127.0.0.1:1";
const load = (parts: { cluster?: object; user?: object }, allowExec = false) =>
  loadKubeCredentials({
    env: {},
    confined: { allowExec },
    kubeconfigText: JSON.stringify({
      "current-context": "main",
      clusters: [{ name: "main", cluster: { server: SERVER, ...parts.cluster } }],
      users: [
        { name: "main", user: { ...parts.user } },
        // Of another context.
        { name: "other", user: { exec: { command: "evil" } } },
      ],
      contexts: [{ name: "main", context: { cluster: "main", user: "main" } }],
    }),
  });

test.each([
  ["cluster.certificate-authority", { cluster: { "certificate-authority": "/etc/ca" } }],
  ["user.client-certificate", { user: { "client-certificate": "/etc/crt" } }],
  ["user.client-key", { user: { "client-key": "/etc/key" } }],
  ["user.tokenFile", { user: { tokenFile: "/var/run/token" } }],
  [
    "user.auth-provider.config.tokenFile",
    { user: { "auth-provider": { name: "own", config: { tokenFile: "/var/run/token" } } } },
  ],
])(
  "rejects a confined kubeconfig with the file %s, even if commands are allowed",
  (field, parts) => {
    for (const allowExec of [false, true]) {
      expect(() => load(parts, allowExec)).toThrow(`${field} names a file`);
    }
  },
);

test.each([
  ["user.exec", { user: { exec: { command: "evil" } } }],
  ["user.exec", { user: { exec: {} } }],
  [
    "user.auth-provider",
    { user: { "auth-provider": { name: "gcp", config: { "cmd-path": "evil" } } } },
  ],
])("rejects a confined kubeconfig with %s unless commands are allowed", (field, parts) => {
  expect(() => load(parts)).toThrow(`${field} runs a command`);
  expect(load(parts, true).server).toBe(SERVER);
});

test("accepts a confined kubeconfig with data only", async () => {
  const { headers } = await load({ user: { token: "t" } }).authorize();
  expect(headers).toEqual({ Authorization: "Bearer t" });
});
