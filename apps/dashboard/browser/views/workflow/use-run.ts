import type { RunDetail } from "@konverge/contracts";
import { useEffect, useState } from "preact/hooks";
import { call, CallError, type Trouble } from "../../api/call.ts";
import { forgetFresh, noteFresh } from "../../state/freshness.ts";
import { pause } from "../../api/pause.ts";

/** Longest wait of a request at the server. Messages of waits are at most this old. */
const WAIT = "5s";
/** The same in ms. */
const EVERY_MS = 5_000;
/** Delay after a failed request. */
const RETRY_MS = 2_000;

export interface LiveRun {
  /** The last successful response. */
  readonly run: RunDetail | undefined;
  readonly trouble: Trouble | undefined;
  /** Sends the request again. */
  readonly reload: () => void;
}

/** Follows a run: each request waits at the server until the run changes or finishes. */
export function useRun(id: string): LiveRun {
  const [run, setRun] = useState<RunDetail>();
  const [trouble, setTrouble] = useState<Trouble>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    const source = Symbol(id);
    const follow = async () => {
      let lastState: string | undefined;
      while (!signal.aborted) {
        try {
          const wait = lastState === undefined ? "" : `?wait=${WAIT}&lastState=${lastState}`;
          const found = await call<RunDetail>(`v1/runs/${encodeURIComponent(id)}${wait}`, {
            signal,
          });
          setRun(found);
          noteFresh(source, found.endedAt === undefined ? EVERY_MS : 0);
          setTrouble(undefined);
          if (found.endedAt !== undefined) return;
          const { status, steps, heartbeatAt } = found;
          const beat = heartbeatAt === undefined ? 0 : Date.parse(heartbeatAt);
          lastState = `${status}/${steps.length}${found.round === undefined ? "" : `/${found.round}`}~${beat}`;
        } catch (error) {
          if (signal.aborted) return;
          setTrouble(troubleOf(error));
          await pause(RETRY_MS, signal);
        }
        await untilVisible(signal);
      }
    };
    void follow();
    return () => {
      stop.abort();
      forgetFresh(source);
    };
  }, [id, round]);
  return { run, trouble, reload: () => setRound((before) => before + 1) };
}

function troubleOf(error: unknown): Trouble {
  return error instanceof CallError
    ? error.trouble
    : { code: "internal", title: "Unreadable response", detail: String(error) };
}

/** Resolves when the page is visible. */
async function untilVisible(signal: AbortSignal): Promise<void> {
  while (document.hidden && !signal.aborted) {
    await new Promise((resolve) => {
      document.addEventListener("visibilitychange", resolve, { once: true });
      signal.addEventListener("abort", resolve, { once: true });
    });
  }
}
