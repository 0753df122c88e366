import type { ChildProcess } from "node:child_process";

/** No usable Redis: the message names the reason and ends with the fix. */
export declare class RedisUnavailable extends Error {
  readonly code: "redis_unavailable";
  constructor(message: string, options?: { cause?: unknown });
}

export interface RedisServer {
  readonly path: string;
  /** `major.minor.patch`. */
  readonly version: string;
  readonly kind: "redis" | "valkey";
  /** Only for a server that was unpacked into the cache: the value for LD_LIBRARY_PATH. */
  readonly libraryPath?: string;
}

/** Finds the first redis-server or valkey-server >= 6.2 on `env.PATH`, in Homebrew's folders or in the cache. */
export declare function findRedisServer(env?: NodeJS.ProcessEnv): RedisServer | undefined;

/**
 * Installs Redis: Homebrew, else apt as root, else apt's packages unpacked into the user's cache. The output of package
 * managers goes to stderr.
 * @throws {RedisUnavailable} with the command for this system
 */
export declare function installRedis(options: {
  readonly log: (line: string) => void;
}): Promise<RedisServer>;

export interface StartRedisOptions {
  /** Data folder, kept at the end. Default: a temporary one, removed at the end. */
  readonly dir?: string | undefined;
  /** Default: a free one. A fixed port that is in use is an error. */
  readonly port?: number | undefined;
  /** Append-only file, fsynced every second. Default true; with false a restart loses all data. */
  readonly appendonly?: boolean | undefined;
  /** Additional server arguments, for example `["--maxmemory", "64mb"]`; later ones take precedence. */
  readonly extraArgs?: readonly string[] | undefined;
  /** Default: the result of `findRedisServer`. */
  readonly server?: RedisServer | undefined;
}

export interface RunningRedis extends AsyncDisposable {
  /** `redis://127.0.0.1:<port>`. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly dir: string;
  readonly version: string;
  readonly kind: "redis" | "valkey";
  readonly process: ChildProcess;
  /** The end of its output. */
  output(): string;
  /** Stops it gracefully (the AOF is flushed). The same happens when this process dies. */
  stop(): Promise<void>;
  /** Kills it like a crash (SIGKILL). */
  kill(): Promise<void>;
}

/**
 * Starts a Redis on 127.0.0.1 and waits until it responds, with the AOF on and without eviction.
 * @throws {RedisUnavailable} no program was found, or it ended at startup (with its output)
 */
export declare function startRedis(options?: StartRedisOptions): Promise<RunningRedis>;

/**
 * Checks an external Redis.
 * @throws {RedisUnavailable} it does not respond, or is older than 6.2
 */
export declare function checkRedisUrl(
  url: string,
): Promise<{ version: string; kind: "redis" | "valkey"; evicts: boolean }>;

export interface ObtainedRedis {
  readonly url: string;
  readonly version: string;
  readonly kind: "redis" | "valkey";
  /** True if it was started here. */
  readonly owned: boolean;
  /** Removes every key that begins with `<prefix>:`, unless the whole server was started here and ends anyway. */
  removeKeys(prefix: string): Promise<void>;
  /** Ends it if it was started here. */
  stop(): Promise<void>;
}

/**
 * Returns `REDIS_URL` if it is set and usable, or else starts a Redis.
 * @throws {RedisUnavailable}
 */
export declare function obtainRedis(options: {
  readonly log: (line: string) => void;
  readonly env?: NodeJS.ProcessEnv;
}): Promise<ObtainedRedis>;

/**
 * Ends the given servers when this process dies in any way (kill -9 too), and removes their folder. Call `release`
 * after the servers have ended, so that a reused process id is never signalled.
 */
export declare function guard(guarded: {
  readonly pids: readonly number[];
  readonly folder?: string;
}): { release(): void };
