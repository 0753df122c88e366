import { useEffect, useRef } from "preact/hooks";
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
  useEffect(() => {
    let remove: (() => void) | undefined;
    let gone = false;
    void import("./plot.ts").then(({ plot }) => {
      if (gone || target.current === null) return;
      remove = plot(target.current, { times, lines, format });
    });
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
      <div ref={target} class="plot" role="img" aria-label={`${title}: ${summary}`} />
    </figure>
  );
}
