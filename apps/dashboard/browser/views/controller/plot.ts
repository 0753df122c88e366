import UPlot from "uplot";

/** A line of a chart. */
export interface Line {
  readonly label: string;
  /** A CSS custom property. */
  readonly color: `--${string}`;
  /** By minute; null without data. */
  readonly values: readonly (number | null)[];
}

export interface PlotOptions {
  /** Unix seconds, by minute. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

const HEIGHT = 200;
const AXIS_FONT = "12px system-ui, sans-serif";
/** Synchronizes the cursors of the charts on a page. */
const SYNC = "minutes";

/** Draws into `target` and returns a function that removes the chart. Follows the width and the color scheme. */
export function plot(target: HTMLElement, options: PlotOptions): () => void {
  let chart = draw(target, options);
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  const redraw = () => {
    chart.destroy();
    chart = draw(target, options);
  };
  const observer = new ResizeObserver(() => {
    chart.setSize({ width: target.clientWidth, height: HEIGHT });
  });
  observer.observe(target);
  scheme.addEventListener("change", redraw);
  return () => {
    observer.disconnect();
    scheme.removeEventListener("change", redraw);
    chart.destroy();
  };
}

function draw(target: HTMLElement, { times, lines, format }: PlotOptions): UPlot {
  const axis = {
    stroke: resolve(target, "--dim"),
    font: AXIS_FONT,
    grid: { stroke: resolve(target, "--line"), width: 1 },
    ticks: { show: false },
  };
  return new UPlot(
    {
      width: target.clientWidth,
      height: HEIGHT,
      // All times on the pages are UTC.
      tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1_000), "UTC"),
      cursor: { sync: { key: SYNC }, y: false },
      legend: { live: true },
      scales: { y: { range: (_chart, _low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [
        { ...axis, space: 70, values: "{HH}:{mm}" },
        { ...axis, size: 60, values: (_chart, ticks) => ticks.map((tick) => format(tick)) },
      ],
      series: [
        { label: "UTC", value: "{HH}:{mm}" },
        ...lines.map(({ label, color }) => ({
          label,
          stroke: resolve(target, color),
          width: 1.5,
          spanGaps: false,
          points: { size: 3 },
          value: (_chart: UPlot, value: number | null) => (value === null ? "–" : format(value)),
        })),
      ],
    },
    [[...times], ...lines.map(({ values }) => [...values])],
    target,
  );
}

/** Returns the computed color of a custom property, because a canvas cannot use custom properties. */
function resolve(target: HTMLElement, property: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${property})`;
  target.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
