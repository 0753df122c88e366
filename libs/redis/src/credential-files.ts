import type { ConnectionOptions } from "node:tls";
import type { RedisFiles } from "@konverge/core";
import type { Redis } from "ioredis";
import { readAgain } from "./read-again.ts";

/** The options of a connection that ioredis reads whenever it connects. */
interface Followed {
  readonly password?: string;
  readonly sentinelPassword?: string;
}

/** The credentials of a URL that are files. ioredis reads them whenever it connects. */
export interface CredentialFiles {
  /** Options for TLS. */
  readonly tls: ConnectionOptions;
  /** The passwords of the first connection, which opens before `follow` can be called. */
  readonly first: Followed;
  /** Makes a connection read its passwords from the files. */
  readonly follow: (redis: Pick<Redis, "options">) => void;
}

/** @throws KonvergeError `invalid_config` if a file cannot be read */
export function openCredentialFiles(files: RedisFiles): CredentialFiles {
  const { ca, cert, key, passwordFile, sentinelPasswordFile } = files;
  const tls = {};
  for (const [name, path] of Object.entries({ ca, cert, key })) {
    if (path !== undefined) define(tls, name, readAgain(path, name));
  }
  const passwords: Partial<Record<keyof Followed, () => string>> = {
    ...(passwordFile === undefined ? {} : { password: readAgain(passwordFile, "passwordFile") }),
    ...(sentinelPasswordFile === undefined
      ? {}
      : { sentinelPassword: readAgain(sentinelPasswordFile, "sentinelPasswordFile") }),
  };
  return {
    tls,
    first: Object.fromEntries(Object.entries(passwords).map(([name, read]) => [name, read()])),
    follow(redis) {
      for (const [name, read] of Object.entries(passwords)) define(redis.options, name, read);
    },
  };
}

/** A property that is read anew each time. ioredis copies the options for TLS with each connection. */
function define(target: object, name: string, get: () => string): void {
  Object.defineProperty(target, name, {
    get,
    // ioredis sets the options of a copy.
    set() {},
    enumerable: true,
    configurable: true,
  });
}
