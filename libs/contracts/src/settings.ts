import { readFileSync } from "node:fs";
import {
  ensureError,
  invalidConfig,
  parseRedisUrl,
  WORKER_ROLES,
  type ErrorIssue,
} from "@konverge/core";
import { z } from "zod";
import { duration } from "./duration.ts";
import {
  CALLBACK_PATH,
  isPlainUrl,
  isPrivateUrl,
  parseGroupRoles,
  type GroupRoleInput,
} from "./group-roles.ts";

/** The environment variable of a setting, and whether its value is a secret. */
interface SettingMeta {
  readonly env: string;
  readonly secret?: boolean;
  readonly description: string;
}
const meta = (env: string, description: string, secret = false): Record<string, unknown> =>
  ({ env, description, secret }) satisfies SettingMeta;

/** Reports an invalid URL under the name of the setting, before the Redis client sees it. */
function checkRedisUrl({ value, issues }: z.core.ParsePayload<string>): void {
  try {
    parseRedisUrl(value);
  } catch (error) {
    // Without the value, which may contain a password.
    issues.push({ code: "custom", message: ensureError(error).message, input: "", path: [] });
  }
}

/** Reports an invalid line without its text, which may be a secret. */
function parseInboundSecrets(
  text: string,
  { addIssue }: Pick<z.RefinementCtx, "addIssue">,
): Record<string, string[]> {
  const secrets: Record<string, string[]> = {};
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    const [, name, secret] =
      /^\s*([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)=(\S{16,})\s*$/.exec(line) ?? [];
    if (name === undefined || secret === undefined) {
      const message = `line ${at + 1} must be name=secret with a secret of at least 16 characters`;
      addIssue({ code: "custom", message, input: "" });
    } else {
      (secrets[name] ??= []).push(secret);
    }
  }
  return secrets;
}

/** Callers must be able to read the end of a run. */
const MIN_RETENTION_MS = 60_000;
/** Shorter intervals of background work load Redis without a benefit. */
const MIN_ROUND_MS = 1_000;

const MIN_SESSION_MS = 60_000;
const MAX_SESSION_MS = 30 * 86_400_000;

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

const AUDIENCE = /^[\x21-\x2b\x2d-\x7e]{1,500}$/;

const port = z.coerce.number().int("must be a whole number").min(0).max(65_535);

/**
 * The settings of all processes. One definition gives the type, the default, the environment variable and the docs
 * (docs/configuration.md). The environment takes precedence over the file.
 */
export const settingsSchema = z.strictObject({
  redisUrl: z
    .string()
    .check(checkRedisUrl)
    .default("redis://127.0.0.1:6379")
    .meta(
      meta(
        "KONVERGE_REDIS_URL",
        "Redis URL; docs/configuration.md lists the forms. REDIS_URL is used if this is not set.",
        true,
      ),
    ),
  prefix: z
    .string()
    .regex(
      /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
      "must consist of lower-case letters, digits and dashes",
    )
    .default("konverge")
    .meta(meta("KONVERGE_PREFIX", "Separates installations on one Redis or cluster.")),
  cluster: z
    .string()
    .min(1)
    .optional()
    .meta(
      meta(
        "KONVERGE_CLUSTER",
        "Cluster of the configuration that this worker serves (default: all). For other commands, the default is `default`.",
      ),
    ),
  server: z
    .url({ protocol: /^https?$/, error: "must be an http:// or https:// URL" })
    // Errors and `konverge config print` show the URL.
    .refine(
      (url) => !URL.canParse(url) || `${new URL(url).username}${new URL(url).password}` === "",
      "must not contain a user name or password; set KONVERGE_TOKEN instead",
    )
    .optional()
    .meta(
      meta(
        "KONVERGE_SERVER",
        "HTTP API that the CLI uses (default: none). Without it, the CLI reads Redis itself.",
      ),
    ),
  kubeconfig: z
    .string()
    .min(1)
    .optional()
    .meta(meta("KONVERGE_KUBECONFIG", "Path of a kubeconfig (default: as kubectl).")),
  context: z
    .string()
    .min(1)
    .optional()
    .meta(meta("KONVERGE_CONTEXT", "Context of the kubeconfig (default: current one).")),
  role: z
    .enum(WORKER_ROLES)
    .default("all")
    .meta(
      meta(
        "KONVERGE_ROLE",
        "Role of this worker: watch, work or all. watch makes requests as leader, work runs handlers, all does both. An installation needs both roles.",
      ),
    ),
  buildId: z
    .string()
    .default("")
    .meta(
      meta(
        "KONVERGE_BUILD_ID",
        "Identifies the deployed code, such as an image tag. When the last worker of another build has stopped, every object is enqueued again. Changed options and handlers are detected without it.",
      ),
    ),
  concurrency: z.coerce
    .number()
    .int("must be a whole number")
    .min(1)
    .optional()
    .meta(meta("KONVERGE_CONCURRENCY", "Concurrent attempts per controller in this process.")),
  conflictRetry: z
    .enum(["inline", "job", "both"])
    .default("both")
    .meta(
      meta(
        "KONVERGE_CONFLICT_RETRY",
        "Retry of conflicts: inline, job or both. inline retries in the handler, job retries the job, both does one after the other.",
      ),
    ),
  maxQueueLength: z.coerce
    .number()
    .int("must be a whole number")
    .min(1)
    .default(100_000)
    .meta(
      meta(
        "KONVERGE_MAX_QUEUE_LENGTH",
        "Waiting keys per controller (default 100000). Beyond the limit, the HTTP API rejects requests with queue_full. Each key needs about 2 KiB of Redis memory.",
      ),
    ),
  startTimeout: duration
    .default(600_000)
    .meta(
      meta(
        "KONVERGE_START_TIMEOUT",
        "Longest wait of a worker for Redis and the API server at startup (default 10m). After that, it exits with the error. With 0s, it exits immediately.",
      ),
    ),
  shutdownGrace: duration
    .default(30_000)
    .meta(meta("KONVERGE_SHUTDOWN_GRACE", "Time for running attempts to finish at shutdown.")),
  requestTimeout: duration
    .default(15_000)
    .meta(
      meta(
        "KONVERGE_REQUEST_TIMEOUT",
        "Timeout of an API call (default 15s). A shorter timeout detects outages sooner; a longer one suits a slow server.",
      ),
    ),
  restoreTolerance: duration
    .refine((ms) => ms >= MIN_ROUND_MS, "must be at least 1s")
    .default(60_000)
    .meta(
      meta(
        "KONVERGE_RESTORE_TOLERANCE",
        "Longest loss of Redis writes that workers accept without an operator (default 1m). After a longer loss, such as a restore from a backup, work is held (docs/restore.md). Set the same value in all processes.",
      ),
    ),
  objectReads: z
    .enum(["on", "off"], "must be on or off")
    .default("on")
    .meta(
      meta(
        "KONVERGE_OBJECT_READS",
        "Object reads by this worker for pages of the dashboard: on or off (default on). docs/security.md lists the shown data.",
      ),
    ),
  plans: z
    .enum(["on", "off"], "must be on or off")
    .default("on")
    .meta(
      meta(
        "KONVERGE_PLANS",
        "Plans of objects by this worker for the HTTP API: on or off (default on). A plan runs handlers of this worker; docs/plan.md describes the requirements on them.",
      ),
    ),
  historyLimitMiB: z.coerce
    .number()
    .int("must be a whole number")
    .min(1, "must be a whole number >= 1")
    .default(256)
    .meta(
      meta(
        "KONVERGE_HISTORY_LIMIT_MIB",
        "Redis memory for history, MiB (default 256). The limit covers attempt records and their search index per cluster. The oldest are deleted first.",
      ),
    ),
  runRetention: duration
    .refine((ms) => ms >= MIN_RETENTION_MS, "must be at least 1m")
    .default(604_800_000)
    .meta(
      meta(
        "KONVERGE_RUN_RETENTION",
        "Time that ended workflow runs are kept (default 7d). The same in all processes. A longer time needs more Redis memory.",
      ),
    ),
  runLimitMiB: z.coerce
    .number()
    .int("must be a whole number")
    .min(1, "must be a whole number >= 1")
    .default(256)
    .meta(
      meta(
        "KONVERGE_RUN_LIMIT_MIB",
        "Redis memory for the ended runs of each workflow, MiB (default 256). The oldest are deleted first, but no run within an hour after its end.",
      ),
    ),
  runRecordLimitKiB: z.coerce
    .number()
    .int("must be a whole number")
    .min(1, "must be 1 to 16384 (KiB)")
    .max(16_384, "must be 1 to 16384 (KiB)")
    .default(1_024)
    .meta(
      meta(
        "KONVERGE_RUN_RECORD_LIMIT_KIB",
        "Largest record or result of a run, KiB (default 1024). Each execution reads all records of its run, so large ones make every step slower.",
      ),
    ),
  runRecheck: duration
    .refine((ms) => ms >= MIN_ROUND_MS, "must be at least 1s")
    .default(60_000)
    .meta(
      meta(
        "KONVERGE_RUN_RECHECK",
        "Time between two checks of a blocked run (default 1m). A shorter time resumes it sooner after its cause was fixed; many blocked runs then cost more.",
      ),
    ),
  runSweep: duration
    .refine((ms) => ms >= MIN_ROUND_MS, "must be at least 1s")
    .default(5_000)
    .meta(
      meta(
        "KONVERGE_RUN_SWEEP",
        "Time between two searches for lost wake-ups (default 5s). Every worker searches once per workflow; a longer time delays such runs after Redis lost data.",
      ),
    ),
  codec: z
    .string()
    .min(1)
    .optional()
    .meta(
      meta(
        "KONVERGE_CODEC",
        "Module with the codec of the workflows, for the HTTP API and the CLI (default: none). Its default export is the codec, or a configuration with one. Workers use the codec of their configuration.",
      ),
    ),
  leaseNamespace: z
    .string()
    .min(1)
    .default("default")
    .meta(meta("KONVERGE_LEASE_NAMESPACE", "Namespace of the leader election Leases.")),
  namespaces: z
    .union([
      z.string().transform((text) => text.split(",").map((one) => one.trim())),
      z.array(z.string()),
    ])
    .refine(
      (names) => names.length > 0 && names.every((name) => NAMESPACE.test(name)),
      "must be names of namespaces, separated by commas",
    )
    .optional()
    .meta(
      meta(
        "KONVERGE_NAMESPACES",
        "Namespaces that the worker may access, separated by commas (default: those of the cluster in the configuration, or all). docs/scope-and-permissions.md explains them.",
      ),
    ),
  leaseDuration: duration
    .default(15_000)
    .meta(meta("KONVERGE_LEASE_DURATION", "Time until a silent leader is replaced (default 15s).")),
  logLevel: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .meta(meta("KONVERGE_LOG_LEVEL", "Least severe level that is logged.")),
  logLimit: z.coerce
    .number()
    .int("must be an integer >= 0")
    .min(0, "must be an integer >= 0")
    .default(200)
    .meta(
      meta(
        "KONVERGE_LOG_LIMIT",
        "Log lines per second and process; further lines are counted (default 200; 0 for no limit).",
      ),
    ),
  metricsHost: z
    .string()
    .min(1)
    .default("127.0.0.1")
    .meta(meta("KONVERGE_METRICS_HOST", "Address of the worker's /metrics, /livez and /readyz.")),
  metricsPort: port
    .optional()
    .meta(
      meta(
        "KONVERGE_METRICS_PORT",
        "Port of a worker's /metrics; 0 selects a free one (default 9090, or a free one if it is in use).",
      ),
    ),
  apiHost: z
    .string()
    .min(1)
    .default("127.0.0.1")
    .meta(
      meta("KONVERGE_API_HOST", "Address of the HTTP API. Beyond loopback, a token is required."),
    ),
  apiPort: port
    .default(7070)
    .meta(meta("KONVERGE_API_PORT", "Port of the HTTP API; 0 selects a free one.")),
  apiDrain: duration
    .default(0)
    .meta(
      meta(
        "KONVERGE_API_DRAIN",
        "Time for which the HTTP API accepts connections after SIGTERM while it is not ready (default 0s). The manifests set 10s, because a Service removes a stopping Pod with a delay of seconds.",
      ),
    ),
  apiRateLimit: z.coerce
    .number()
    .min(1, "must be a number >= 1")
    .default(1_000)
    .meta(
      meta(
        "KONVERGE_API_RATE_LIMIT",
        "Requests per second and caller (default 1000). The limit applies to one API process, with a burst of twice the rate.",
      ),
    ),
  kubeAudiences: z
    .union([
      z.string().transform((text) => text.split(",").map((one) => one.trim())),
      z.array(z.string()),
    ])
    .refine(
      (names) => names.length > 0 && names.every((name) => AUDIENCE.test(name)),
      "must be audiences of tokens, separated by commas",
    )
    .optional()
    .meta(
      meta(
        "KONVERGE_KUBE_AUDIENCES",
        "Audiences of Kubernetes tokens that the HTTP API accepts, separated by commas (default: none; the API accepts only its own tokens). docs/identity.md describes the rights of their users.",
      ),
    ),
  inboundSecrets: z
    .string()
    .transform(parseInboundSecrets)
    .optional()
    .meta(
      meta(
        "KONVERGE_INBOUND_SECRETS",
        "Secrets of inbound sources for the HTTP API (default: none). Lines `name=secret`. Each secret has at least 16 characters. A name can have several secrets.",
        true,
      ),
    ),
  inboundSecretsDir: z
    .string()
    .min(1)
    .optional()
    .meta(
      meta(
        "KONVERGE_INBOUND_SECRETS_DIR",
        "Folder with the secrets of inbound sources (default: none). One file per source, with one secret per line. Changes apply without a restart.",
      ),
    ),
  auditKeys: z
    .string()
    .transform((text) => text.split(",").map((one) => one.trim()))
    .refine(
      (keys) => keys.every((key) => /^[\x21-\x7e]{32,}$/.test(key)),
      "must be keys of at least 32 characters, separated by commas",
    )
    .optional()
    .meta(
      meta(
        "KONVERGE_AUDIT_KEYS",
        "Keys of the hash chain of the audit log, separated by commas (default: none; the hashes have no key). The first one hashes new entries, the others are accepted. Set the same keys for the HTTP API and for a CLI without a server.",
        true,
      ),
    ),
  auditFile: z
    .string()
    .min(1)
    .optional()
    .meta(
      meta(
        "KONVERGE_AUDIT_FILE",
        "File to which the HTTP API appends the entries of the audit log, as JSON lines (default: none). docs/audit.md describes its rotation.",
      ),
    ),
  auditUrl: z
    .url({ protocol: /^https?$/, error: "must be an http:// or https:// URL" })
    .refine(
      (url) => !URL.canParse(url) || `${new URL(url).username}${new URL(url).password}` === "",
      "must not contain a user name or password; set KONVERGE_AUDIT_URL_TOKEN instead",
    )
    .optional()
    .meta(
      meta(
        "KONVERGE_AUDIT_URL",
        "URL to which the HTTP API sends the entries of the audit log (default: none). docs/audit.md describes the requests.",
        true,
      ),
    ),
  auditUrlToken: z
    .string()
    .regex(/^[\x21-\x7e]+$/, "must consist of visible ASCII characters")
    .optional()
    .meta(
      meta(
        "KONVERGE_AUDIT_URL_TOKEN",
        "Bearer token of the requests to KONVERGE_AUDIT_URL (default: none).",
        true,
      ),
    ),
  token: z
    .string()
    .min(32, "must have at least 32 characters")
    .optional()
    .meta(
      meta(
        "KONVERGE_TOKEN",
        "Bearer token of an admin of the HTTP API. docs/security.md explains other tokens.",
        true,
      ),
    ),
  oidcIssuer: z
    .string()
    .refine(isPrivateUrl, "must be an https:// URL; http:// is allowed for localhost only")
    .refine(isPlainUrl, "must not contain a user name, a password, a query or a fragment")
    .optional()
    .meta(
      meta(
        "KONVERGE_OIDC_ISSUER",
        "Issuer of the OIDC provider with which users log in to the dashboard (default: none). docs/sign-in.md describes the settings.",
      ),
    ),
  oidcClientId: z
    .string()
    .min(1)
    .max(500, "must have at most 500 characters")
    .optional()
    .meta(meta("KONVERGE_OIDC_CLIENT_ID", "ID of the HTTP API as a client of the OIDC provider.")),
  oidcClientSecretFile: z
    .string()
    .min(1)
    .optional()
    .meta(
      meta(
        "KONVERGE_OIDC_CLIENT_SECRET_FILE",
        "Path of the file with the client secret. Each login reads the file, so that a new secret applies without a restart.",
      ),
    ),
  oidcRedirectUrl: z
    .string()
    .refine(isPrivateUrl, "must be an https:// URL; http:// is allowed for localhost only")
    .refine(
      (url) => isPlainUrl(url) && url.endsWith(`/${CALLBACK_PATH}`),
      `must be the address of the dashboard followed by ${CALLBACK_PATH}`,
    )
    .optional()
    .meta(
      meta(
        "KONVERGE_OIDC_REDIRECT_URL",
        "Address to which the provider returns browsers: the address of the dashboard followed by `auth/callback`.",
      ),
    ),
  oidcScopes: z
    .string()
    .regex(
      /^(?=(.* )?openid( |$))[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/,
      "must be scopes separated by single spaces, with openid among them",
    )
    .default("openid profile email")
    .meta(
      meta(
        "KONVERGE_OIDC_SCOPES",
        "Scopes that a login requests, separated by spaces (default `openid profile email`).",
      ),
    ),
  oidcNameClaim: z
    .string()
    .min(1)
    .default("preferred_username")
    .meta(
      meta(
        "KONVERGE_OIDC_NAME_CLAIM",
        "Claim with the name of the user (default `preferred_username`). Choose one that users cannot change.",
      ),
    ),
  oidcGroupsClaim: z
    .string()
    .min(1)
    .default("groups")
    .meta(
      meta("KONVERGE_OIDC_GROUPS_CLAIM", "Claim with the groups of the user (default `groups`)."),
    ),
  oidcRoles: z
    .custom<string | readonly GroupRoleInput[]>()
    .transform(parseGroupRoles)
    .optional()
    .meta(
      meta(
        "KONVERGE_OIDC_ROLES",
        "Roles and scopes of groups: a list of `{ group, role, scope, classes }`, as JSON in the environment.",
      ),
    ),
  oidcProviderName: z
    .string()
    .min(1)
    .max(100, "must have at most 100 characters")
    .optional()
    .meta(
      meta(
        "KONVERGE_OIDC_PROVIDER_NAME",
        "Name of the provider on the login page (default: host of the issuer).",
      ),
    ),
  oidcSession: duration
    .refine(
      (ms) => ms >= MIN_SESSION_MS && ms <= MAX_SESSION_MS,
      "must be a duration from 1m to 30d",
    )
    .default(8 * 3_600_000)
    .meta(
      meta(
        "KONVERGE_OIDC_SESSION",
        "Time after which a user must log in again (default 8h). Changed groups apply at the next login.",
      ),
    ),
});

export type Settings = z.output<typeof settingsSchema>;
export type SettingsInput = z.input<typeof settingsSchema>;

type Environment = Readonly<Record<string, string | undefined>>;

export interface SettingDoc {
  readonly key: string;
  readonly env: string;
  readonly description: string;
  readonly secret: boolean;
}

/** Returns the settings as a table, for help texts and docs. */
export function describeSettings(): SettingDoc[] {
  return Object.entries(settingsSchema.shape).map(([key, schema]) => {
    const { env, description, secret } = (schema as z.ZodType).meta() as unknown as SettingMeta;
    return { key, env, description, secret: secret === true };
  });
}

/**
 * Reads the settings from a configuration file and from the environment. `NAME_FILE` reads the value of `NAME` from a
 * file, which is the recommended way for secrets.
 * @throws KonvergeError `invalid_config` with all invalid keys together, including unknown `KONVERGE_*` names
 */
export function readSettings(options: {
  readonly file?: SettingsInput | undefined;
  readonly env: Environment;
}): Settings {
  const { file = {}, env } = options;
  const issues: ErrorIssue[] = [];
  const docs = describeSettings();
  const input: Record<string, unknown> = { ...file };
  const source = new Map<string, string>();
  for (const { key, env: name } of docs) {
    const value = readVariable(env, name, issues);
    if (value === undefined) continue;
    input[key] = value;
    source.set(key, name);
  }
  if (input["redisUrl"] === undefined && env["REDIS_URL"]) {
    input["redisUrl"] = env["REDIS_URL"];
    source.set("redisUrl", "REDIS_URL");
  }
  issues.push(...unknownVariables(env, docs));
  const parsed = settingsSchema.safeParse(input);
  issues.push(...namedIssues(parsed.error, source));
  if (issues.length > 0 || !parsed.success) throw invalidConfig(issues);
  return parsed.data;
}

/** The cluster of processes that use one cluster, such as the HTTP API. */
export function clusterOf({ cluster = "default" }: Pick<Settings, "cluster">): string {
  return cluster;
}

/** Returns the issues of the settings in a configuration file, without the environment. */
export function findSettingsIssues(file: unknown): ErrorIssue[] {
  return namedIssues(settingsSchema.safeParse(file).error, new Map()).map(
    ({ pointer, detail }) => ({ pointer: `/settings${pointer}`, detail: `settings.${detail}` }),
  );
}

/** Names each issue by its environment variable or its key in the file. */
function namedIssues(
  error: z.ZodError | undefined,
  source: ReadonlyMap<string, string>,
): ErrorIssue[] {
  return (error?.issues ?? []).map((issue) => {
    const key = String(issue.path[0] ?? "");
    const unknown = issue.code === "unrecognized_keys" ? issue.keys.join(", ") : undefined;
    const where = unknown ?? source.get(key) ?? key;
    return {
      pointer: `/${unknown ?? key}`,
      detail: `${where}: ${unknown === undefined ? issue.message : "unknown setting; see docs/configuration.md"}`,
    };
  });
}

function readVariable(env: Environment, name: string, issues: ErrorIssue[]): string | undefined {
  const path = env[`${name}_FILE`];
  if (path === undefined || path === "") return env[name] === "" ? undefined : env[name];
  if (env[name] !== undefined) {
    issues.push({
      pointer: `/${name}`,
      detail: `${name} and ${name}_FILE are both set; unset one`,
    });
  }
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    issues.push({
      pointer: `/${name}_FILE`,
      detail: `${name}_FILE: ${path} cannot be read: ${why}`,
    });
    return undefined;
  }
}

function unknownVariables(env: Environment, docs: readonly SettingDoc[]): ErrorIssue[] {
  const known = new Set(docs.flatMap(({ env: name }) => [name, `${name}_FILE`]));
  return Object.keys(env)
    .filter(
      (name) =>
        name.startsWith("KONVERGE_") && !known.has(name) && !name.startsWith("KONVERGE_TEST_"),
    )
    .map((name) => ({
      pointer: `/${name}`,
      detail: `${name}: unknown setting; known settings: ${docs.map((doc) => doc.env).join(", ")}`,
    }));
}
