import { tmpdir } from "node:os";
import { join } from "node:path";
import { withLock } from "../host/lock.js";
import { isOnPath, succeeds } from "../host/run.js";
import { installByApt, unpackByApt } from "./apt.js";
import { findRedisServer, listRedisServers } from "./find.js";
import { RedisUnavailable } from "./unavailable.js";
import { OLDEST_REDIS } from "./version.js";

/**
 * Manual commands for machines where automatic installation fails; the first whose package manager is on PATH is shown
 * first.
 */
const BY_HAND = [
  ["brew", "brew install redis"],
  ["apt-get", "sudo apt-get install redis-server"],
  ["dnf", "sudo dnf install valkey    # or: redis"],
  ["pacman", "sudo pacman -S valkey"],
  ["apk", "sudo apk add redis"],
  ["zypper", "sudo zypper install redis"],
  ["docker", "docker run -d -p 6379:6379 redis:7 && export REDIS_URL=redis://127.0.0.1:6379"],
];

/** @type {typeof import("./index.d.ts").installRedis} */
export async function installRedis({ log }) {
  const onWait = (/** @type {string} */ owner) =>
    log(`waiting for ${owner}, which is installing Redis`);
  return await withLock(join(tmpdir(), "konverge-redis.lock"), { onWait }, () => {
    const found = findRedisServer();
    if (found !== undefined) return found;
    for (const { version, path } of listRedisServers()) {
      log(`${path} is version ${version}, but ${OLDEST_REDIS} or later is required`);
    }
    for (const { name, applies, install } of ways()) {
      if (!applies) continue;
      log(`no redis-server or valkey-server on PATH; installing one with ${name}`);
      const installed = install(log) ? findRedisServer() : undefined;
      if (installed !== undefined) return installed;
      log(`${name} installed no usable redis-server`);
    }
    throw new RedisUnavailable(instructions());
  });
}

function ways() {
  const isRoot = process.getuid?.() === 0;
  const hasApt = isOnPath("apt-get");
  const env = { ...process.env, HOMEBREW_NO_ENV_HINTS: "1", HOMEBREW_NO_INSTALL_CLEANUP: "1" };
  return [
    {
      name: "`brew install redis`",
      // Homebrew refuses to run as root.
      applies: !isRoot && isOnPath("brew"),
      install: () => succeeds("brew", ["install", "redis"], { env }),
    },
    { name: "`apt-get install redis-server`", applies: isRoot && hasApt, install: installByApt },
    {
      name: "`apt-get download`, unpacked into this user's cache",
      applies: !isRoot && hasApt && isOnPath("dpkg-deb"),
      install: unpackByApt,
    },
  ];
}

/** @param {NodeJS.ProcessEnv} [env] @returns {string} */
function instructions(env = process.env) {
  const here = BY_HAND.filter(([program = ""]) => isOnPath(program, env));
  const commands = (here.length > 0 ? here : BY_HAND).map(([, command]) => `  ${command}`);
  return [
    `Konverge needs Redis or Valkey ${OLDEST_REDIS} or later and could not install it. Install it with one of`,
    ...commands,
    "or set REDIS_URL to a running server, then start again.",
  ].join("\n");
}
