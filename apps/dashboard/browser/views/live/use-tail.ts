import type { AttemptPage, StreamEvent } from "@konverge/contracts";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { followEvents, type StreamState } from "../../api/event-stream.ts";

/** A row of the tail. The stream can resume after `id`. */
export interface TailEvent {
  readonly id: string;
  readonly at: string;
  readonly event: StreamEvent;
}

const MOST_KEPT = 500;
/** More frequent updates are not readable. */
const FLUSH_MS = 250;

export interface Tail {
  /** Newest first. */
  readonly rows: readonly TailEvent[];
  /** Number of newer rows held back. */
  readonly held: number;
  readonly state: StreamState;
  /** True until the earlier attempts are read. */
  readonly isReading: boolean;
  /** Shows the rows held back. */
  readonly release: () => void;
}

/**
 * Returns the latest events of the stream `path`, after the attempts of the list `before` that ended earlier. While `hold`
 * returns true, new events are held back.
 */
export function useTail(path: string, before: string, hold: () => boolean): Tail {
  const [rows, setRows] = useState<readonly TailEvent[]>([]);
  const [held, setHeld] = useState(0);
  const [state, setState] = useState<StreamState>("connecting");
  const [isReading, setReading] = useState(true);
  const waiting = useRef<TailEvent[]>([]);

  const release = () => {
    const fresh = waiting.current.toReversed();
    waiting.current = [];
    setHeld(0);
    if (fresh.length > 0) setRows((shown) => [...fresh, ...shown].slice(0, MOST_KEPT));
  };
  useEffect(() => {
    const stop = new AbortController();
    let timer: number | undefined;
    waiting.current = [];
    setRows([]);
    setHeld(0);
    setReading(true);
    let isFilled = false;
    const fill = async () => {
      isFilled = true;
      const { items } = await call<AttemptPage>(before, { signal: stop.signal });
      const known = new Set(waiting.current.map(attemptOf));
      setRows((shown) => {
        for (const row of shown) known.add(attemptOf(row));
        const older = items.map(rowOf).filter((row) => !known.has(attemptOf(row)));
        // Workers store attempts once a second, so those of two workers overlap.
        const all = [...shown, ...older].toSorted((one, other) => (one.at < other.at ? 1 : -1));
        return all.slice(0, MOST_KEPT);
      });
    };
    void followEvents(new URL(path, document.baseURI), {
      signal: stop.signal,
      onState: (next) => {
        setState(next);
        // Behind the start of the stream, so that no attempt is missed. Without them, the tail begins empty.
        if (next === "open" && !isFilled) {
          void fill()
            .catch(() => undefined)
            .finally(() => setReading(stop.signal.aborted));
        }
        if (next === "broken") setReading(false);
      },
      onFrame: ({ id, event, data }) => {
        const parsed = { type: event, data: JSON.parse(data) as unknown } as StreamEvent;
        waiting.current.push({ id, at: timeOf(parsed), event: parsed });
        if (waiting.current.length > MOST_KEPT) waiting.current.shift();
        timer ??= window.setTimeout(() => {
          timer = undefined;
          if (hold()) setHeld(waiting.current.length);
          else release();
        }, FLUSH_MS);
      },
    });
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [path, before]);
  return { rows, held, state, isReading, release };
}

/** The row of an attempt that ended before the stream began. */
function rowOf(data: AttemptPage["items"][number]): TailEvent {
  const event = { type: "attempt", data } as const;
  return { id: data.id, at: timeOf(event), event };
}

function attemptOf({ event }: TailEvent): string | undefined {
  return event.type === "attempt" ? event.data.id : undefined;
}

function timeOf(event: StreamEvent): string {
  switch (event.type) {
    case "attempt":
      return new Date(Date.parse(event.data.startedAt) + event.data.durationMs).toISOString();
    case "change":
      return event.data.at;
    case "guard":
      return new Date(event.data.transition.atMs).toISOString();
  }
}
