import { isKonvergeError, KonvergeError } from "@konverge/core";
import type { RequestItem, RequestResult, WorkQueue } from "../contract/work-queue.ts";

const MOST = 1_000;
/** Requests in flight. More could exceed the deadline of a request on a busy machine. */
const AT_ONCE = 100;

/** Makes many requests and returns a result for each. Requests of one part share script calls. */
export async function requestMany(
  items: readonly RequestItem[],
  request: WorkQueue["request"],
): Promise<RequestResult[]> {
  if (items.length > MOST) {
    const detail = `at most ${MOST} items are allowed (got ${items.length}); send several batches`;
    throw new KonvergeError("invalid_request", detail, {
      issues: [{ pointer: "/items", detail }],
    });
  }
  const one = async ({ key, trigger, options }: RequestItem): Promise<RequestResult> => {
    try {
      return { kind: "accepted", accepted: await request(key, trigger, options) };
    } catch (error) {
      if (!isKonvergeError(error)) throw error;
      return { kind: "refused", error };
    }
  };
  const results: RequestResult[] = [];
  for (let start = 0; start < items.length; start += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(start, start + AT_ONCE).map(one))));
  }
  return results;
}
