import { invalidConfig, toMs, type Duration } from "@konverge/core";
import type { InboundSource } from "./event-source.ts";
import { durationIssue, functionIssue, issuesOf, nameIssue } from "./source-issues.ts";
import { headerIssue, type SenderVerification } from "./verification.ts";

/** The options of {@link inbound}. */
export interface InboundOptions {
  /** How the sender is verified: `githubSignature()`, `hmacSignature(...)` or `bearerToken()`. The HTTP API has the secret. */
  readonly verify: SenderVerification;
  /**
   * Returns the objects to reconcile for a delivery. Runs in the leader of the controller. If it throws, the delivery is tried
   * again with a backoff from 1 s to 5 min.
   */
  readonly map: InboundSource["map"];
  /** Header with the id of a delivery. Default: the header of `verify`, if it has one. */
  readonly deliveryHeader?: string;
  /** Headers that `map` receives. Default: the headers of `verify`. */
  readonly headers?: readonly string[];
  /**
   * How long a repeated delivery is recognized by its id or, without one, its signature. Default 1 h. Each delivery needs
   * about 230 bytes of Redis memory for this time.
   */
  readonly window?: Duration;
  /** Largest body, in KiB. Default 1024, at most 8192. */
  readonly maxBodyKiB?: number;
  /** Longest call of `map`. Default 30 s. */
  readonly timeout?: Duration;
}

const MAX_BODY_KIB = 8_192;

/**
 * Defines a source that other systems send deliveries to: `POST /v1/inbound/<name>` of the HTTP API. A delivery is stored in Redis
 * before it is acknowledged.
 * @param name identifies the source in its cluster: lower-case letters, digits and dashes
 * @throws KonvergeError `invalid_config`
 */
export function inbound(name: string, options: InboundOptions): InboundSource {
  const { verify, map, window = "1h", timeout = "30s", maxBodyKiB = 1_024 } = options;
  const { deliveryHeader = verify?.deliveryHeader, headers = verify?.headers ?? [] } = options;
  const issues = issuesOf({
    name: nameIssue(name),
    verify: isVerification(verify)
      ? undefined
      : "must be githubSignature(), hmacSignature({ header }) or bearerToken()",
    map: functionIssue(map, "(delivery) => ({ namespace, name })"),
    deliveryHeader: deliveryHeader === undefined ? undefined : headerIssue(deliveryHeader),
    headers: headersIssue(headers),
    window: durationIssue(window, "window", 1_000),
    timeout: durationIssue(timeout, "timeout", 1),
    maxBodyKiB:
      Number.isInteger(maxBodyKiB) && maxBodyKiB >= 1 && maxBodyKiB <= MAX_BODY_KIB
        ? undefined
        : `must be an integer from 1 to ${MAX_BODY_KIB} (got ${String(maxBodyKiB)})`,
  });
  if (issues.length > 0) throw invalidConfig(issues, `inbound "${String(name)}" is`);
  return {
    kind: "inbound",
    name,
    map,
    timeoutMs: toMs(timeout, "timeout"),
    inbound: {
      verify: verify.verification,
      ...(deliveryHeader === undefined ? {} : { deliveryHeader: deliveryHeader.toLowerCase() }),
      headers: headers.map((header) => header.toLowerCase()),
      windowMs: toMs(window, "window"),
      maxBodyKiB,
    },
  };
}

function isVerification(value: unknown): boolean {
  const { verification } = (value ?? {}) as Partial<SenderVerification>;
  return verification?.kind === "hmac" || verification?.kind === "bearer";
}

/** Credentials are not stored. */
const CREDENTIALS = ["authorization", "cookie", "proxy-authorization"];

function headersIssue(headers: unknown): string | undefined {
  if (!Array.isArray(headers)) return "must be a list of names of headers";
  const wrong = headers.map(headerIssue).find((issue) => issue !== undefined);
  if (wrong !== undefined) return wrong;
  const secret = (headers as string[]).find((name) => CREDENTIALS.includes(name.toLowerCase()));
  return secret === undefined
    ? undefined
    : `"${secret}" contains a credential and cannot be stored`;
}
