import { effect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ChartData } from "./chart-data.ts";
import type { Plot, PlotZone } from "./plot.ts";
import { zone, zoneName } from "../state/zone.ts";

const ZONE: PlotZone = {
  isUtc: () => zone.peek() === "utc",
  nameOf: zoneName,
  follow(listener) {
    let shown = zone.peek();
    return effect(() => {
      if (zone.value === shown) return;
      shown = zone.value;
      listener();
    });
  },
};

export interface ChartProps {
  readonly title: string;
  /** The content of the chart as text. */
  readonly summary: string;
  readonly data: ChartData;
  /** Called with Unix seconds when the user selects a period. */
  readonly onZoom?: (fromS: number, toS: number) => void;
  /** Notes below the chart. */
  readonly children?: ComponentChildren;
}

/** A chart with its summary. The first chart loads the library. */
export function Chart({ title, summary, data, onZoom, children }: ChartProps) {
  const target = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | undefined>(undefined);
  const latest = useRef(data);
  latest.current = data;
  const [failed, setFailed] = useState(false);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const canZoom = onZoom !== undefined;
  // Another set of series is another chart.
  const shape = JSON.stringify([data.series.map(({ label }) => label), data.height]);
  useEffect(() => {
    let isRemoved = false;
    const draw = async () => {
      try {
        const { createPlot } = await import("./plot.ts");
        if (isRemoved || target.current === null) return;
        plot.current = createPlot(
          target.current,
          latest.current,
          canZoom ? (fromS, toS) => zoom.current?.(fromS, toS) : undefined,
          ZONE,
        );
      } catch {
        // The server is unreachable, or serves the hashed files of another version.
        setFailed(true);
      }
    };
    void draw();
    return () => {
      isRemoved = true;
      plot.current?.remove();
      plot.current = undefined;
    };
  }, [shape, canZoom]);
  useEffect(() => plot.current?.update(data), [data]);
  return (
    <figure class="panel chart">
      <figcaption>
        <span class="chart-title">{title}</span> <span class="dim">{summary}</span>
      </figcaption>
      {failed ? <p class="dim">Failed to load the chart; the table has the same data.</p> : null}
      <div
        ref={target}
        class="plot"
        role="img"
        aria-label={`${title}: ${summary}`}
        style={{ "--height": `${data.height}px` }}
      />
      {children}
    </figure>
  );
}
