import { defined, findCause, isKonvergeError, type KonvergeError } from "@konverge/core";
import type { CallHold, PlannedCall, SendPlanned } from "../contract/call-plan.ts";
import type { ApiAnswer, HttpAnswer } from "../contract/http-answer.ts";
import { ConnectionBroken } from "../errors/connection-broken.ts";
import type { RecordedCall, RecordedError, Tick } from "./recorded-call.ts";

/** A call while it is being recorded. */
export interface NotedCall extends RecordedCall {
  readonly sensitive: boolean;
  readonly ref: PlannedCall["ref"];
}

/** Records the calls of one scope. */
export interface CallRecorder extends CallHold {
  /** In the order in which they were sent. */
  readonly calls: readonly NotedCall[];
}

export interface CallRecorderOptions {
  readonly tick: Tick;
  /** Takes room for a text; false if there is none. Without room for an entry, a call is not recorded. */
  readonly take: (characters: number) => boolean;
}

/** Of each entry, besides its texts. */
export const ENTRY_CHARACTERS = 100;

/** Response headers that the client reads. */
const HEADERS = ["content-type", "retry-after", "location"];

export function createCallRecorder({ tick, take }: CallRecorderOptions): CallRecorder {
  const calls: NotedCall[] = [];
  return {
    calls,
    async send(call, live) {
      if (!take(ENTRY_CHARACTERS + call.path.length)) return await live(call);
      const { method, path, contentType, accept, body, sensitive, ref } = call;
      const at = calls.length;
      const sentAt = tick();
      const sent = { sentAt, method, path, sensitive, ref, ...defined({ contentType, accept }) };
      const isKept = take(body?.length ?? 0);
      const note = (rest: Partial<NotedCall>) => {
        const kept = isKept ? defined({ body }) : {};
        calls[at] = { ...sent, answeredAt: tick(), ...kept, ...rest };
      };
      // Holds its place, should the call never end.
      calls[at] = { ...sent, answeredAt: sentAt, omitted: "aborted" };
      return await observe(call, live, {
        answered: (answer) =>
          note(
            isKept && take(answer.body.length)
              ? { answer: { ...answer, headers: headersOf(answer) } }
              : { omitted: "tooLarge" },
          ),
        failed: (error) => note({ error }),
        aborted: () => note({ omitted: "aborted" }),
      });
    },
  };
}

interface Observer {
  readonly answered: (answer: HttpAnswer) => void;
  readonly failed: (error: RecordedError) => void;
  readonly aborted: () => void;
}

async function observe(
  call: PlannedCall,
  live: SendPlanned,
  { answered, failed, aborted }: Observer,
): Promise<ApiAnswer> {
  let received: HttpAnswer | undefined;
  const onAnswer = (answer: HttpAnswer) => {
    received = answer;
    call.onAnswer?.(answer);
  };
  try {
    return await live({ ...call, onAnswer });
  } catch (error) {
    if (received === undefined) {
      const ours = findCause(error, isKonvergeError);
      if (ours === undefined || ABORTED.has(ours.code)) aborted();
      else failed(errorOf(ours));
    }
    throw error;
  } finally {
    if (received !== undefined) answered(received);
  }
}

/** The codes of calls that the end of their attempt has interrupted. */
const ABORTED: ReadonlySet<string> = new Set(["attempt_ended", "cancelled", "timed_out"]);

function errorOf(error: KonvergeError): RecordedError {
  const { code, message, retryAfterMs } = error;
  const isBroken = error instanceof ConnectionBroken;
  return { code, message, ...defined({ retryAfterMs }), ...(isBroken ? { broken: true } : {}) };
}

function headersOf({ headers }: HttpAnswer): Record<string, string> {
  return Object.fromEntries(
    HEADERS.flatMap((name) => {
      const value = headers[name];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );
}
