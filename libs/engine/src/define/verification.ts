import { invalidConfig, toMs, type Duration } from "@konverge/core";
import type { Verification } from "@konverge/queue";
import { durationIssue, issuesOf } from "./source-issues.ts";

/** How the sender of deliveries is verified: the result of `githubSignature`, `hmacSignature` or `bearerToken`. */
export interface SenderVerification {
  readonly verification: Verification;
  /** Defaults of {@link InboundOptions}. */
  readonly deliveryHeader?: string;
  readonly headers?: readonly string[];
}

/** The options of {@link hmacSignature}. */
export interface HmacOptions {
  /** Header of the signature, such as `X-Signature`. */
  readonly header: string;
  /** Prefix of the signature in the header, such as `sha256=`. Default: none. */
  readonly prefix?: string;
  /** Default `sha256`. */
  readonly algorithm?: "sha256" | "sha512";
  /** Default `hex`. */
  readonly encoding?: "hex" | "base64";
  /**
   * Header with the time of the signature, in s or ms since 1970 or RFC 3339. The signed text is then this value, a dot and the
   * body, so that an old delivery cannot be sent again. Default: the body is signed.
   */
  readonly timestampHeader?: string;
  /** Largest difference between that time and the clock of Redis. Default 5 min. */
  readonly tolerance?: Duration;
}

const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;

/** Verifies deliveries of GitHub: the header `X-Hub-Signature-256`. `map` receives `x-github-event` in `headers`. */
export function githubSignature(): SenderVerification {
  return {
    ...hmacSignature({ header: "X-Hub-Signature-256", prefix: "sha256=" }),
    deliveryHeader: "x-github-delivery",
    headers: ["x-github-event"],
  };
}

/** Verifies an HMAC of the body. @throws KonvergeError `invalid_config` */
export function hmacSignature(options: HmacOptions): SenderVerification {
  const { header, prefix = "", algorithm = "sha256", encoding = "hex" } = options;
  const { timestampHeader, tolerance = "5m" } = options;
  const issues = issuesOf({
    header: headerIssue(header),
    prefix: typeof prefix === "string" ? undefined : "must be text",
    algorithm: oneOf(algorithm, ["sha256", "sha512"]),
    encoding: oneOf(encoding, ["hex", "base64"]),
    timestampHeader: timestampHeader === undefined ? undefined : headerIssue(timestampHeader),
    tolerance: durationIssue(tolerance, "tolerance", 1_000),
  });
  if (issues.length > 0) throw invalidConfig(issues, "hmacSignature is");
  return {
    verification: {
      kind: "hmac",
      header: header.toLowerCase(),
      prefix,
      algorithm,
      encoding,
      ...(timestampHeader === undefined ? {} : { timestampHeader: timestampHeader.toLowerCase() }),
      toleranceMs: toMs(tolerance, "tolerance"),
    },
  };
}

/** Verifies the header `Authorization: Bearer <secret>`. */
export function bearerToken(): SenderVerification {
  return { verification: { kind: "bearer" } };
}

export function headerIssue(name: unknown): string | undefined {
  return typeof name === "string" && HEADER.test(name)
    ? undefined
    : `must be the name of a header, such as "X-Signature" (got ${JSON.stringify(name)})`;
}

function oneOf(value: string, known: readonly string[]): string | undefined {
  return known.includes(value) ? undefined : `must be ${known.join(" or ")} (got "${value}")`;
}
