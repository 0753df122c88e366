import { comparableText, defined, KonvergeError } from "@konverge/core";
import type { Context } from "hono";
import type { AnswerStore } from "../kept/answer-store.ts";

/** Visible ASCII, the characters of headers. */
const KEY = /^[\x21-\x7e]{1,255}$/;
const HEADER = "idempotency-key";

/**
 * Makes a change once per Idempotency-Key and replays its response. Failures are not stored, so the same key can be
 * retried.
 */
export async function replayed(
  context: Context,
  respond: () => Promise<Response>,
  options: {
    readonly answers: AnswerStore;
    readonly callerId: string;
    readonly onError: (error: unknown) => void;
  },
): Promise<Response> {
  const { answers, callerId, onError } = options;
  const { req } = context;
  const key = req.header(HEADER);
  if (key === undefined) return await respond();
  if (!KEY.test(key)) {
    const detail = "Idempotency-Key must be 1 to 255 visible ASCII characters";
    throw new KonvergeError("invalid_request", detail, {
      issues: [{ pointer: `/${HEADER}`, detail }],
    });
  }
  const request = comparableText(
    JSON.stringify([req.method, req.url.replace(/^\w+:\/\/[^/]+/, ""), await req.text()]),
  );
  const begun = await answers.begin(callerId, key, request);
  if ("kept" in begun) {
    const { status, body, location } = begun.kept;
    return new Response(body, {
      status,
      headers: {
        "content-type": "application/json",
        "idempotency-replayed": "true",
        ...defined({ location }),
      },
    });
  }
  const { claim } = begun;
  let response: Response;
  try {
    response = await respond();
  } catch (error) {
    // If Redis failed, the key remains in flight until Redis is available again.
    await claim.forget().catch(onError);
    throw error;
  }
  const location = response.headers.get("location");
  const { status } = response;
  const body = await response.clone().text();
  // The change is made, so its response is returned even if it cannot be stored yet.
  await claim.keep({ status, body, ...(location === null ? {} : { location }) }).catch(onError);
  return response;
}
