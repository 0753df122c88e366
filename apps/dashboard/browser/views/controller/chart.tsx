import { useEffect, useRef, useState } from "preact/hooks";
import type { Line } from "./plot.ts";

export interface ChartProps {
  readonly title: string;
  /** What the lines show, in words. */
  readonly summary: string;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

/** A chart with its summary. What draws it is loaded by the first one. */
export function Chart({ title, summary, times, lines, format }: ChartProps) {
  const target = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let remove: (() => void) | undefined;
    let gone = false;
    const draw = async () => {
      try {
        const { plot } = await import("./plot.ts");
        if (!gone && target.current !== null) {
          remove = plot(target.current, { times, lines, format });
        }
      } catch {
        // Its file is gone with the version that this page is of, or the server is away.
        setFailed(true);
      }
    };
    void draw();
    return () => {
      gone = true;
      remove?.();
    };
  }, [times, lines]);
  return (
    <figure class="panel chart">
      <figcaption>
        <span class="strong">{title}</span> <span class="dim">{summary}</span>
      </figcaption>
      {failed ? <p class="dim">The chart cannot be loaded; the table says the same.</p> : null}
      <div ref={target} class="plot" role="img" aria-label={`${title}: ${summary}`} />
    </figure>
  );
}
