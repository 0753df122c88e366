import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedis } from "@konverge/apiserver";
import { createWorkQueue } from "@konverge/queue";
import { checkRedis } from "@konverge/redis";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/until.ts";
import { createCertificateAuthority } from "../kube/certificate-authority.ts";
import { CLUSTER, CONTROLLER, keyOf, workOn } from "../queue/queue-harness.ts";
import { startRedisCluster, TLS_OFFSET } from "./redis-cluster-fixture.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "konverge-credentials-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

/** Opens a queue with a worker, and returns a function that waits until a new key has run. */
function open(url: string, cluster = CLUSTER) {
  const target = { url, deadlineMs: 10_000 };
  const queue = createWorkQueue({ redis: target, controller: CONTROLLER, cluster });
  onTestFinished(() => queue.close());
  const { closed } = workOn(queue, () => ({ kind: "done" }));
  return async (name: string) => {
    await until(`${name} is requested`, async () => {
      try {
        return await queue.request({ ...keyOf(name), cluster }, { kind: "http" });
      } catch {
        // Connections are replaced.
        return undefined;
      }
    });
    await until(`${name} has run`, () => closed.some(({ id }) => id.endsWith(`/${name}`)));
  };
}

test("follows a password that is replaced in its file, on every connection", async () => {
  const redis = await startRedis({});
  onTestFinished(() => redis.stop());
  const admin = new Redis({ port: redis.port });
  onTestFinished(() => admin.disconnect());
  await admin.config("SET", "requirepass", "first");
  const path = write("password", "first\n");
  const url = `redis://127.0.0.1:${redis.port}?passwordFile=${path}`;
  await checkRedis({ url });
  const runs = open(url);
  await runs("before");
  write("password", "second\n");
  await admin.config("SET", "requirepass", "second");
  await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await runs("after");
  await expect(checkRedis({ url: `redis://127.0.0.1:${redis.port}` })).rejects.toMatchObject({
    message: expect.stringMatching(/NOAUTH/) as string,
  });
});

test("follows a client certificate and a private authority, and names a missing file", async () => {
  const authority = createCertificateAuthority();
  const server = authority.issue("redis", ["127.0.0.1", "localhost"]);
  const tls = ["--tls-port", "0", "--tls-auth-clients", "yes"];
  const [cert, key, ca] = [
    write("server.crt", server.cert),
    write("server.key", server.key),
    write("ca.crt", authority.ca),
  ];
  const files = ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca];
  const redis = await startRedis({ extraArgs: [...tls, ...files] });
  onTestFinished(() => redis.stop());
  const admin = new Redis({ port: redis.port });
  onTestFinished(() => admin.disconnect());
  const port = redis.port + 20_000 > 65_000 ? redis.port - 20_000 : redis.port + 20_000;
  await admin.config("SET", "tls-port", String(port));

  const client = authority.issue("worker");
  const [own, ownKey] = [write("tls.crt", client.cert), write("tls.key", client.key)];
  const url = `rediss://127.0.0.1:${port}?ca=${ca}&cert=${own}&key=${ownKey}`;
  await checkRedis({ url });
  const runs = open(url);
  await runs("before");

  // Another authority signs both certificates from now on.
  const next = createCertificateAuthority();
  const renewed = next.issue("redis", ["127.0.0.1"]);
  const renewedClient = next.issue("worker");
  write("tls.crt", renewedClient.cert);
  write("tls.key", renewedClient.key);
  write("ca.crt", next.ca);
  write("server.crt", renewed.cert);
  write("server.key", renewed.key);
  await admin.config("SET", "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", ca);
  await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await runs("after");

  await expect(checkRedis({ url: `rediss://127.0.0.1:${port}?ca=${ca}` })).rejects.toMatchObject({
    code: "redis_unavailable",
  });
  await expect(checkRedis({ url: `${url}x` })).rejects.toMatchObject({
    code: "invalid_config",
    message: expect.stringMatching(
      /parameter key cannot be read: .*tls\.keyx \(ENOENT\)/,
    ) as string,
  });
});

test("a Redis Cluster with certificates for names, as hosted ones have, and a password that is replaced", async () => {
  const authority = createCertificateAuthority();
  const { cert, key } = authority.issue("redis", ["localhost"]);
  const ca = write("ca.crt", authority.ca);
  const tls = {
    "tls-cert-file": write("server.crt", cert),
    "tls-key-file": write("server.key", key),
    "tls-ca-cert-file": ca,
    "tls-auth-clients": "no",
    "cluster-announce-hostname": "localhost",
    "cluster-preferred-endpoint-type": "hostname",
  };
  await using redis = await startRedisCluster({ tls });
  const nodes = redis.primaries.map(({ port }) => new Redis({ port }));
  for (const node of nodes) node.on("error", () => undefined);
  onTestFinished(() => nodes.forEach((node) => node.disconnect()));
  const setPassword = async (password: string) => {
    for (const node of nodes) await node.config("SET", "requirepass", password);
  };
  await setPassword("first");
  const password = write("password", "first\n");
  const [seed] = redis.primaries.map(({ port }) => port + TLS_OFFSET);
  const url = `rediss+cluster://localhost:${seed}?ca=${ca}&passwordFile=${password}`;
  await checkRedis({ url });
  const names = ["default", "east", "west", "north", "south", "center"];
  const clusters = names.map((name) => open(url, name));
  for (const runs of clusters) await runs("before");
  const used = await Promise.all(nodes.map((node) => node.dbsize()));
  expect(Math.min(...used)).toBeGreaterThan(0);

  write("password", "second\n");
  await setPassword("second");
  for (const node of nodes) await node.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  for (const runs of clusters) await runs("after");

  // By its address, the certificate of a node is not valid.
  for (const wrong of [url.replace("localhost", "127.0.0.1"), url.replace(`ca=${ca}&`, "")]) {
    await expect(checkRedis({ url: wrong }), wrong).rejects.toMatchObject({
      code: "redis_unavailable",
    });
  }
});
