import type { StreamEvent } from "@konverge/contracts";
import { useEffect, useRef, useState } from "preact/hooks";
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
  /** Shows the rows held back. */
  readonly release: () => void;
}

/** Returns the latest events of a stream. While `hold` returns true, new events are held back. */
export function useTail(path: string, hold: () => boolean): Tail {
  const [rows, setRows] = useState<readonly TailEvent[]>([]);
  const [held, setHeld] = useState(0);
  const [state, setState] = useState<StreamState>("connecting");
  const waiting = useRef<TailEvent[]>([]);

  const release = () => {
    const fresh = waiting.current.toReversed();
    waiting.current = [];
    setHeld(0);
    if (fresh.length > 0) setRows((before) => [...fresh, ...before].slice(0, MOST_KEPT));
  };
  useEffect(() => {
    const stop = new AbortController();
    let timer: number | undefined;
    waiting.current = [];
    setRows([]);
    setHeld(0);
    void followEvents(new URL(path, document.baseURI), {
      signal: stop.signal,
      onState: setState,
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
  }, [path]);
  return { rows, held, state, release };
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
