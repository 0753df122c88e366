import { readFile } from "node:fs/promises";
import {
  KonvergeError,
  NOTIFICATION_FORMATS,
  toMs,
  type Duration,
  type NotificationFormat,
} from "@konverge/core";

/** A string, an environment variable or a file, which is read for each message. Its text may be secret. */
export type SecretText = string | { readonly env: string } | { readonly file: string };

/** The options of a receiver. */
export interface WebhookOptions {
  /** The form of the body: an incoming webhook of Slack, JSON, or the API v2 of Alertmanager. */
  readonly format: NotificationFormat;
  /** Identifies the receiver in records and metrics. Default: the format. */
  readonly name?: string;
  /** Headers of each request, for example `authorization`. Default: none. */
  readonly headers?: Readonly<Record<string, SecretText>>;
  /** Longest time of a request. Default 10s. */
  readonly timeout?: Duration;
}

/** The address of a receiver at one time. */
export interface ResolvedWebhook {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]+$/i;
const DEFAULT_TIMEOUT: Duration = "10s";
const MAX_TIMEOUT_MS = 60_000;
const OPTIONS = ["format", "name", "headers", "timeout"];

/** A receiver of notifications. It holds its address in private fields, so that no log or error shows it. */
export class Webhook {
  readonly name: string;
  readonly format: NotificationFormat;
  readonly timeoutMs: number;
  readonly #url: SecretText;
  readonly #headers: Readonly<Record<string, SecretText>>;

  constructor(url: SecretText, options: WebhookOptions) {
    const issue = findWebhookIssue(url, options);
    if (issue !== undefined) throw new KonvergeError("invalid_config", `webhook: ${issue}`);
    const { format, name = format, headers = {}, timeout = DEFAULT_TIMEOUT } = options;
    this.#url = url;
    this.#headers = headers;
    this.format = format;
    this.name = name;
    this.timeoutMs = toMs(timeout, "timeout");
  }

  /** Reads the address and the headers. @throws Error whose text contains no secret */
  async resolve(env: NodeJS.ProcessEnv): Promise<ResolvedWebhook> {
    const url = await readSecret(this.#url, "url", env);
    const issue = findUrlIssue(url);
    if (issue !== undefined) throw new Error(`url ${issue}`);
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(this.#headers)) {
      const text = await readSecret(value, `header ${name}`, env);
      if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
        throw new Error(`header ${name} must be one line of text`);
      }
      headers[name.toLowerCase()] = text;
    }
    return { url, headers };
  }
}

/**
 * Returns a receiver of notifications. Read a URL with a secret from an environment variable or a file:
 * `webhook({ env: "SLACK_URL" }, { format: "slack" })`.
 * @throws KonvergeError `invalid_config`
 */
export function webhook(url: SecretText, options: WebhookOptions): Webhook {
  return new Webhook(url, options);
}

function findWebhookIssue(url: unknown, options: unknown): string | undefined {
  if (!isSecretText(url)) return 'url must be text, { env: "NAME" } or { file: "PATH" }';
  const urlIssue = typeof url === "string" ? findUrlIssue(url) : undefined;
  if (urlIssue !== undefined) return `url ${urlIssue}`;
  if (typeof options !== "object" || options === null) return "options with a format are required";
  const {
    format,
    name,
    headers = {},
    timeout = DEFAULT_TIMEOUT,
  } = options as Partial<WebhookOptions>;
  const unknown = Object.keys(options).find((key) => !OPTIONS.includes(key));
  if (unknown !== undefined) return `${unknown} is unknown; valid options: ${OPTIONS.join(", ")}`;
  if (!NOTIFICATION_FORMATS.some((known) => known === format)) {
    return `format must be ${NOTIFICATION_FORMATS.join(", ")} (got ${JSON.stringify(format)})`;
  }
  if (name !== undefined && !(typeof name === "string" && NAME.test(name))) {
    return `name must consist of at most 63 lower-case letters, digits and dashes (got ${JSON.stringify(name)})`;
  }
  for (const [header, value] of Object.entries(headers)) {
    if (!HEADER.test(header)) return `headers: ${JSON.stringify(header)} is not a header name`;
    if (!isSecretText(value)) {
      return `headers.${header} must be text, { env: "NAME" } or { file: "PATH" }`;
    }
  }
  const ms = toMs(timeout, "webhook: timeout");
  if (ms < 1 || ms > MAX_TIMEOUT_MS) return `timeout must be 1ms to 60s (got "${timeout}")`;
  return undefined;
}

/** The text never contains the URL. */
function findUrlIssue(url: string): string | undefined {
  if (!URL.canParse(url)) return "must be an absolute URL";
  const { protocol, username, password } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") return "must be an http:// or https:// URL";
  if (username + password === "") return undefined;
  return "must not contain a user name or password; use a header authorization";
}

function isSecretText(value: unknown): value is SecretText {
  if (typeof value === "string") return value !== "";
  if (typeof value !== "object" || value === null) return false;
  const [[kind, from] = [], ...more] = Object.entries(value);
  if (more.length > 0 || typeof from !== "string" || from === "") return false;
  return kind === "env" || kind === "file";
}

async function readSecret(
  secret: SecretText,
  what: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  if (typeof secret === "string") return secret;
  if ("env" in secret) {
    const value = env[secret.env];
    if (value !== undefined && value !== "") return value;
    throw new Error(`${what}: the environment variable ${secret.env} is not set`);
  }
  try {
    return (await readFile(secret.file, "utf8")).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`${what}: ${secret.file} cannot be read (${code ?? "unknown error"})`, {
      cause: error,
    });
  }
}
