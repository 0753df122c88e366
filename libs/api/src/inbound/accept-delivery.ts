import type { InboundResult } from "@konverge/contracts";
import { defined, KonvergeError } from "@konverge/core";
import type { AnnouncedInbound, SourceStore } from "@konverge/queue";
import type { Context } from "hono";
import { digest } from "../access/digest.ts";
import { traceparentOf } from "../http/traceparent-of.ts";
import { readDelivery } from "./read-delivery.ts";
import type { InboundSecrets } from "./inbound-secrets.ts";
import { verifySender, type SignedParts } from "./verify-sender.ts";

export interface InboundTarget {
  readonly name: string;
  readonly inbound: AnnouncedInbound;
  readonly store: SourceStore;
  readonly secrets: InboundSecrets;
  /** Limits the verified deliveries of the source. @throws KonvergeError `rate_limited` */
  readonly admit: () => void;
}

const MAX_ID = 255;
const FULL_RETRY_MS = 5_000;

/**
 * Verifies a delivery and stores it. It is acknowledged once Redis has it.
 * @throws KonvergeError `unauthorized`, `inbound_closed`, `body_too_large`, `queue_full`, `rate_limited`, and as `readDelivery`
 */
export async function acceptDelivery(
  { name, inbound, store, secrets, admit }: InboundTarget,
  context: Context,
): Promise<InboundResult> {
  const { req } = context;
  const header = (of: string) => req.header(of);
  const verifyBody = verifySender(inbound.verify, secrets.of(name), header);
  const bytes = await readBody(context, inbound.maxBodyKiB);
  const signed = verifyBody(bytes);
  admit();
  const headers = req.header();
  const written = readDelivery(bytes, headers);
  const id = idOf(written.event, inbound.deliveryHeader && header(inbound.deliveryHeader));
  const kept = Object.fromEntries(
    inbound.headers.flatMap((of) => {
      const value = headers[of];
      return value === undefined ? [] : [[of, value]];
    }),
  );
  const traceparent = traceparentOf(context);
  const answer = await store.accept(name, {
    text: JSON.stringify({ ...written, headers: kept, ...defined({ id, traceparent }) }),
    marks: marksOf(written.event, id, signed),
    // A repetition that is older than this has a signature that is too old.
    windowMs: Math.max(inbound.windowMs, 2 * (signed.sent?.toleranceMs ?? 0)),
    ...defined({ sent: signed.sent }),
  });
  switch (answer.kind) {
    case "accepted":
    case "duplicate":
      return { id: id ?? answer.detail, status: answer.kind };
    case "skewed": {
      const seconds = Math.round(Number(answer.detail) / 1_000);
      const place = seconds >= 0 ? `${seconds} s ago` : `${-seconds} s in the future`;
      const limit = Math.round((signed.sent?.toleranceMs ?? 0) / 1_000);
      const detail = `the delivery was signed ${place} by the clock of Redis; at most ${limit} s are accepted, so synchronize the clocks with NTP or sign it again`;
      throw new KonvergeError("unauthorized", detail);
    }
    case "full": {
      const detail = `too many deliveries of the inbound source "${name}" wait; retry later`;
      throw new KonvergeError("queue_full", detail, { retryAfterMs: FULL_RETRY_MS });
    }
  }
}

/** Reads no more than the limit, with or without a `content-length`. @throws KonvergeError `body_too_large` */
async function readBody({ req }: Context, maxKiB: number): Promise<Uint8Array> {
  const refuse = () => {
    throw new KonvergeError("body_too_large", `the body is larger than ${maxKiB} KiB`);
  };
  if (Number(req.header("content-length") ?? 0) > maxKiB * 1_024) refuse();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of req.raw.body ?? []) {
    length += chunk.length;
    if (length > maxKiB * 1_024) refuse();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The ID from the sender. The ID of a CloudEvent is unique in its source. */
function idOf(
  event: Readonly<Record<string, string>>,
  header: string | undefined,
): string | undefined {
  const id = header ?? event["id"];
  if (id === undefined || id === "") return undefined;
  if (id.length <= MAX_ID) return id;
  const detail = `the id of a delivery must have at most ${MAX_ID} characters (got ${id.length})`;
  throw new KonvergeError("invalid_request", detail);
}

/**
 * Returns the identifiers of a delivery: its ID or, without one, its signature. Two events with different IDs can have identical
 * bodies, and thus the same signature.
 */
function marksOf(
  event: Readonly<Record<string, string>>,
  id: string | undefined,
  { signature }: SignedParts,
): readonly string[] {
  if (id === undefined && signature === undefined) return [];
  const parts = id === undefined ? ["signature", signature] : ["id", event["source"] ?? "", id];
  return [digest(JSON.stringify(parts)).toString("base64url").slice(0, 24)];
}
