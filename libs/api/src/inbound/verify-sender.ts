import { createHmac, timingSafeEqual } from "node:crypto";
import { defined, KonvergeError } from "@konverge/core";
import type { Verification } from "@konverge/queue";
import { digest } from "../access/digest.ts";

type HeaderOf = (name: string) => string | undefined;
type Hmac = Verification & { readonly kind: "hmac" };

/** The signature and the signed time of a verified delivery. */
export interface SignedParts {
  /** The signature, which identifies a delivery without an ID. */
  readonly signature?: string;
  /** The signed time, and its largest difference from the clock of Redis. */
  readonly sent?: { readonly atMs: number; readonly toleranceMs: number };
}

/** The verification of a request, once its body is read. */
export type VerifyBody = (body: Uint8Array) => SignedParts;

/**
 * Verifies the headers. The returned function verifies the body.
 * @throws KonvergeError `unauthorized`, without any part of the credential; `invalid_request` for an unreadable timestamp
 */
export function verifySender(
  verification: Verification,
  secrets: readonly string[],
  header: HeaderOf,
): VerifyBody {
  return verification.kind === "bearer"
    ? verifyBearer(secrets, header)
    : verifySignature(verification, secrets, header);
}

function verifyBearer(secrets: readonly string[], header: HeaderOf): VerifyBody {
  const [, token] = /^bearer +(\S+) *$/i.exec(header("authorization") ?? "") ?? [];
  if (token === undefined) throw refused("send the header `Authorization: Bearer <secret>`");
  const given = digest(token);
  // Every secret is compared, and digests have equal length, so the time reveals nothing.
  const matches = secrets.map((secret) => timingSafeEqual(digest(secret), given));
  if (!matches.includes(true)) throw refused("the bearer token does not match the secret");
  return () => ({});
}

function verifySignature(
  { header: name, prefix, algorithm, encoding, timestampHeader, toleranceMs }: Hmac,
  secrets: readonly string[],
  header: HeaderOf,
): VerifyBody {
  const given = header(name);
  if (given === undefined) throw refused(`the header ${name} with the signature is missing`);
  const signature = given.startsWith(prefix)
    ? decode(given.slice(prefix.length), encoding)
    : undefined;
  const length = algorithm === "sha256" ? 32 : 64;
  if (signature?.length !== length) {
    const form = `"${prefix}" and ${length} bytes in ${encoding}`;
    throw refused(`the header ${name} must be ${form}`);
  }
  const timestamp = timestampHeader === undefined ? undefined : header(timestampHeader);
  if (timestampHeader !== undefined && timestamp === undefined) {
    throw refused(`the header ${timestampHeader} with the time of the signature is missing`);
  }
  const sent = timestamp === undefined ? undefined : { atMs: timeOf(timestamp), toleranceMs };
  if (sent !== undefined && Number.isNaN(sent.atMs)) {
    throw refused(`the header ${timestampHeader} must be a time in s, ms or RFC 3339`);
  }
  return (body) => {
    const matches = secrets.map((secret) => {
      const hmac = createHmac(algorithm, secret);
      if (timestamp !== undefined) hmac.update(`${timestamp}.`);
      return timingSafeEqual(hmac.update(body).digest(), signature);
    });
    if (!matches.includes(true)) {
      throw refused(`the signature in ${name} does not match the body and the secret`);
    }
    return { signature: signature.toString("base64url"), ...defined({ sent }) };
  };
}

/** Undefined for text of another encoding. Buffer ignores characters that do not belong to the encoding. */
function decode(text: string, encoding: "hex" | "base64"): Buffer | undefined {
  const isOf = encoding === "hex" ? /^([0-9a-f]{2})+$/i : /^[A-Za-z0-9+/]+={0,2}$/;
  return isOf.test(text) ? Buffer.from(text, encoding) : undefined;
}

/** Seconds have 10 digits until the year 2286, milliseconds 13. */
function timeOf(text: string): number {
  if (/^\d{1,11}(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  if (/^\d{12,15}$/.test(text)) return Number(text);
  return /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
}

function refused(detail: string): KonvergeError {
  return new KonvergeError("unauthorized", detail);
}
