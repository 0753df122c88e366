import type { ChildProcess } from "node:child_process";

/** No Redis to work with: the message says why and ends with the fix. */
export declare class RedisUnavailable extends Error {
  readonly code: "redis_unavailable";
  constructor(message: string, options?: { cause?: unknown });
}

export interface RedisServer {
  readonly path: string;
  /** `major.minor.patch`. */
  readonly version: string;
  readonly kind: "redis" | "valkey";
  /** Only of a server that was unpacked into our cache: what LD_LIBRARY_PATH must name. */
  readonly libraryPath?: string;
}

/** The first redis-server or valkey-server >= 6.2 on `env.PATH`, in Homebrew's folders or in our cache. */
export declare function findRedisServer(env?: NodeJS.ProcessEnv): RedisServer | undefined;

/**
 * Brings one: Homebrew, else apt as root, else apt's packages unpacked into the user's cache. What the package managers
 * print goes to stderr.
 * @throws {RedisUnavailable} with the command to type on this system
 */
export declare function installRedis(options: {
  readonly log: (line: string) => void;
}): Promise<RedisServer>;

export interface StartRedisOptions {
  /** Data folder, kept at the end. Default: a temporary one, removed at the end. */
  readonly dir?: string | undefined;
  /** Default: a free one. A fixed port that is taken is an error. */
  readonly port?: number | undefined;
  /** Append-only file, fsynced every second. Default true; false forgets everything at a restart. */
  readonly appendonly?: boolean | undefined;
  /** More of the server's own arguments, for example `["--maxmemory", "64mb"]`; a later one wins. */
  readonly extraArgs?: readonly string[] | undefined;
  /** Default: what `findRedisServer` finds. */
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
  /** The end of what it printed. */
  output(): string;
  /** Ends it in order (the AOF is flushed). The same happens when this process dies. */
  stop(): Promise<void>;
  /** Ends it as a crash does (SIGKILL). */
  kill(): Promise<void>;
}

/**
 * Starts a Redis of our own on 127.0.0.1, ready when it answers: AOF on, nothing is evicted.
 * @throws {RedisUnavailable} there is none to start, or it ends at its start (with what it printed)
 */
export declare function startRedis(options?: StartRedisOptions): Promise<RunningRedis>;

/**
 * Looks at a Redis that somebody else runs.
 * @throws {RedisUnavailable} it does not answer, or is older than 6.2
 */
export declare function checkRedisUrl(
  url: string,
): Promise<{ version: string; kind: "redis" | "valkey"; evicts: boolean }>;

export interface ObtainedRedis {
  readonly url: string;
  readonly version: string;
  readonly kind: "redis" | "valkey";
  /** Whether we started it. */
  readonly owned: boolean;
  /** Removes every key that begins with `<prefix>:`, unless the whole server is ours and ends anyway. */
  removeKeys(prefix: string): Promise<void>;
  /** Ends it if we started it. */
  stop(): Promise<void>;
}

/**
 * `REDIS_URL` if it is set and good, else one of our own.
 * @throws {RedisUnavailable}
 */
export declare function obtainRedis(options: {
  readonly log: (line: string) => void;
  readonly env?: NodeJS.ProcessEnv;
}): Promise<ObtainedRedis>;

/**
 * Makes servers that we started die with this process, however it dies (kill -9 too), and removes their folder.
 * `release` after the servers ended, so that a reused process id is never signalled.
 */
export declare function guard(guarded: {
  readonly pids: readonly number[];
  readonly folder?: string;
}): { release(): void };
