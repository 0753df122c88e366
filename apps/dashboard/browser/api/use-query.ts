import { useEffect, useRef, useState } from "preact/hooks";
import { forgetFresh, noteFresh } from "../state/freshness.ts";
import { call, CallError, type Trouble } from "./call.ts";

export interface Loaded<T> {
  /** The last successful response for this path, also during a reload. */
  readonly data: T | undefined;
  readonly trouble: Trouble | undefined;
  readonly loading: boolean;
  /** Sends the request again. */
  readonly reload: () => void;
}

export interface QueryOptions {
  /** False for data that does not count for the age of the page. Default true. */
  readonly isPartOfPage?: boolean;
}

/**
 * Reads `path`, and again every `everyMs` while the page is visible. Undefined sends no request. Data of one path is never
 * returned for another.
 */
export function useQuery<T>(
  path: string | undefined,
  everyMs = 0,
  { isPartOfPage = true }: QueryOptions = {},
): Loaded<T> {
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
    const source = Symbol(path);
    const read = async () => {
      window.clearTimeout(timer);
      try {
        const data = await call<T>(path, { signal: stop.signal });
        if (stop.signal.aborted) return;
        setState({ path, data, done: true });
        if (isPartOfPage) noteFresh(source, everyMs);
      } catch (error) {
        if (stop.signal.aborted) return;
        const trouble =
          error instanceof CallError
            ? error.trouble
            : { code: "internal", title: "Unreadable response", detail: String(error) };
        setState((before) => ({
          path,
          ...(before.path === path && before.data !== undefined ? { data: before.data } : {}),
          trouble,
          done: true,
        }));
      }
      if (everyMs > 0 && !stop.signal.aborted && !document.hidden) {
        timer = window.setTimeout(() => void read(), everyMs);
      }
    };
    const onVisible = () => {
      if (!document.hidden && everyMs > 0) void read();
    };
    void read();
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      stop.abort();
      forgetFresh(source);
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [path, everyMs, round, isPartOfPage]);

  const fresh = state.path === path;
  return {
    data: fresh ? state.data : undefined,
    trouble: fresh ? state.trouble : undefined,
    loading: path !== undefined && (!fresh || !state.done),
    reload: () => setRound((before) => before + 1),
  };
}
