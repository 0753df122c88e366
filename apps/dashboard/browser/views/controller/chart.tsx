import { useEffect, useRef, useState } from "preact/hooks";
import type { Line } from "./plot.ts";

export interface ChartProps {
  readonly title: string;
  /** The content of the lines as text. */
  readonly summary: string;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

/** A chart with its summary. The first chart loads the library. */
export function Chart({ title, summary, times, lines, format }: ChartProps) {
  const target = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let remove: (() => void) | undefined;
    let isRemoved = false;
    const draw = async () => {
      try {
        const { plot } = await import("./plot.ts");
        if (!isRemoved && target.current !== null) {
          remove = plot(target.current, { times, lines, format });
        }
      } catch {
        // The server is unreachable, or serves the hashed files of another version.
        setFailed(true);
      }
    };
    void draw();
    return () => {
      isRemoved = true;
      remove?.();
    };
  }, [times, lines]);
  return (
    <figure class="panel chart">
      <figcaption>
        <span class="strong">{title}</span> <span class="dim">{summary}</span>
      </figcaption>
      {failed ? <p class="dim">Failed to load the chart; the table has the same data.</p> : null}
      <div ref={target} class="plot" role="img" aria-label={`${title}: ${summary}`} />
    </figure>
  );
}
