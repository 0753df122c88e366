import { useEffect, useRef, useState } from "preact/hooks";
import { call, CallError, type Trouble } from "./call.ts";

export interface Loaded<T> {
  /** The last good answer to this question, also while a newer one is awaited. */
  readonly data: T | undefined;
  readonly trouble: Trouble | undefined;
  readonly loading: boolean;
  /** Asks again now. */
  readonly reload: () => void;
}

/**
 * Reads `path`, again every `everyMs` while the page is looked at. Undefined asks nothing. An answer to an earlier question
 * is never shown for a later one.
 */
export function useQuery<T>(path: string | undefined, everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ path?: string; data?: T; trouble?: Trouble; done: boolean }>(
    {
      done: false,
    },
  );
  const [round, setRound] = useState(0);
  const current = useRef(path);
  current.current = path;

  useEffect(() => {
    if (path === undefined) return;
    const stop = new AbortController();
    let timer: number | undefined;
    const ask = async () => {
      window.clearTimeout(timer);
      try {
        const data = await call<T>(path, { signal: stop.signal });
        setState({ path, data, done: true });
      } catch (error) {
        if (stop.signal.aborted) return;
        const trouble =
          error instanceof CallError
            ? error.trouble
            : { code: "internal", title: "Unreadable answer", detail: String(error) };
        setState((before) => ({
          path,
          ...(before.path === path && before.data !== undefined ? { data: before.data } : {}),
          trouble,
          done: true,
        }));
      }
      if (everyMs > 0 && !stop.signal.aborted && !document.hidden) {
        timer = window.setTimeout(() => void ask(), everyMs);
      }
    };
    const onSeen = () => {
      if (!document.hidden && everyMs > 0) void ask();
    };
    void ask();
    document.addEventListener("visibilitychange", onSeen);
    return () => {
      stop.abort();
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", onSeen);
    };
  }, [path, everyMs, round]);

  const fresh = state.path === path;
  return {
    data: fresh ? state.data : undefined,
    trouble: fresh ? state.trouble : undefined,
    loading: path !== undefined && (!fresh || !state.done),
    reload: () => setRound((before) => before + 1),
  };
}
