import { defined } from "@konverge/core";
import UPlot from "uplot";
import type { ChartData, Series } from "./chart-data.ts";

const AXIS_FONT = "11px system-ui, sans-serif";
/** Synchronizes the cursors of the charts on a page. */
const SYNC = "minutes";
/** The least upper end of an axis: below it, the ticks of counts are fractions. */
const MIN_HIGH = 4;
/** Shorter selections are clicks, in px. */
const MIN_SELECTION = 8;

export interface Plot {
  update(data: ChartData): void;
  remove(): void;
}

/** The time zone of the axis. Passed in: with imports of its own, this file would split that of the first view. */
export interface PlotZone {
  readonly isUtc: () => boolean;
  readonly nameOf: (atMs?: number) => string;
  /** Calls the listener after each change. Returns the function that ends it. */
  readonly follow: (listener: () => void) => () => void;
}

/** Draws into `target`. Follows the width, the color scheme and the time zone. */
export function createPlot(
  target: HTMLElement,
  first: ChartData,
  onZoom: ((fromS: number, toS: number) => void) | undefined,
  zone: PlotZone,
): Plot {
  let data = first;
  let chart = draw(target, () => data, onZoom, zone);
  const redraw = () => {
    chart.destroy();
    chart = draw(target, () => data, onZoom, zone);
  };
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", redraw);
  const observer = new ResizeObserver(() => {
    chart.setSize({ width: target.clientWidth, height: data.height });
  });
  observer.observe(target);
  const unfollow = zone.follow(redraw);
  return {
    update(next) {
      data = next;
      chart.setData(valuesOf(next));
    },
    remove() {
      unfollow();
      observer.disconnect();
      scheme.removeEventListener("change", redraw);
      chart.destroy();
    },
  };
}

function draw(
  target: HTMLElement,
  data: () => ChartData,
  onZoom: ((fromS: number, toS: number) => void) | undefined,
  zone: PlotZone,
): UPlot {
  const { height, series, format, formatRight } = data();
  const colorOf = colorsOf(target);
  const axis = {
    stroke: colorOf("--dim"),
    font: AXIS_FONT,
    grid: { stroke: colorOf("--line"), width: 1 },
    ticks: { show: false },
  };
  const range: UPlot.Scale.Range = (_chart, _low, high) => [
    0,
    Math.max(MIN_HIGH, (high ?? 0) * 1.1),
  ];
  // Ticks that round to the label of the one below would repeat it.
  const labels = (of: (value: number) => string) => (_chart: UPlot, ticks: number[]) =>
    ticks
      .map((tick) => of(tick))
      .map((text, at, texts) => (at > 0 && texts[at - 1] === text ? "" : text));
  return new UPlot(
    {
      width: target.clientWidth,
      height,
      padding: [6, formatRight === undefined ? 20 : 0, 0, 0],
      tzDate: (seconds) => {
        const date = new Date(seconds * 1_000);
        return zone.isUtc() ? UPlot.tzDate(date, "UTC") : date;
      },
      cursor: {
        sync: { key: SYNC },
        y: false,
        points: { size: 5 },
        drag: { x: onZoom !== undefined, y: false, setScale: false },
      },
      scales: { y: { range }, right: { range } },
      axes: [
        { ...axis, space: 60, size: 24, values: "{HH}:{mm}" },
        { ...axis, space: 28, size: 46, values: labels(format) },
        ...(formatRight === undefined
          ? []
          : [
              {
                ...axis,
                scale: "right",
                side: 1 as const,
                space: 28,
                size: 46,
                grid: { show: false },
                values: labels(formatRight),
              },
            ]),
      ],
      series: [
        { label: zone.nameOf(), value: (_chart, atS) => (atS === null ? "" : clockOf(atS, zone)) },
        ...series.map((each, at) => seriesOptions(each, at, { data, colorOf })),
      ],
      hooks: {
        drawClear: [(chart) => shade(chart, data(), colorOf)],
        draw: [(chart) => mark(chart, data(), colorOf)],
        setSelect: [
          (chart) => {
            const { left, width } = chart.select;
            if (width < MIN_SELECTION) return;
            onZoom?.(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
            chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    },
    valuesOf(data()),
    target,
  );
}

function clockOf(atS: number, zone: PlotZone): string {
  const date = new Date(atS * 1_000);
  const minutes = zone.isUtc() ? 0 : date.getTimezoneOffset();
  return new Date(date.getTime() - minutes * 60_000).toISOString().slice(11, 16);
}

type ColorOf = (property: string) => string;

function seriesOptions(
  { label, color, kind = "line", scale, isDashed = false }: Series,
  at: number,
  { data, colorOf }: { readonly data: () => ChartData; readonly colorOf: ColorOf },
): UPlot.Series {
  const stroke = colorOf(color);
  const { format, formatRight } = data();
  const text = scale === "right" ? (formatRight ?? format) : format;
  return {
    label,
    stroke,
    width: kind === "bar" ? 0 : 1.5,
    ...defined({ scale }),
    ...(kind === "bar" ? { paths: UPlot.paths.bars?.({ size: [0.9, 24] }) } : {}),
    ...(kind === "line" ? {} : { fill: kind === "bar" ? stroke : `${stroke}44` }),
    ...(isDashed ? { dash: [4, 3] } : {}),
    points: kind === "bar" ? { show: false } : { show: true, size: 5, filter: lonely },
    spanGaps: false,
    // Stacked values are sums; the legend shows the value itself.
    value: (_chart, _sum, _series, index) => {
      // Without a cursor, the legend has no values.
      if (index === null) return "";
      const value = data().series[at]?.values[index];
      return value === null || value === undefined ? "–" : text(value);
    },
  } as UPlot.Series;
}

/** Returns the values between gaps, which have no line. */
const lonely: UPlot.Series.Points.Filter = (chart, series, _isShown, _gaps) => {
  const values = chart.data[series] ?? [];
  const has = (index: number) => (values[index] ?? null) !== null;
  return [...values.keys()].filter((index) => has(index) && !has(index - 1) && !has(index + 1));
};

/** Bars are stacked, the last series at the bottom: each is drawn up to its sum with those that follow. */
function valuesOf({ times, series }: ChartData): UPlot.AlignedData {
  const stacked = series.map(({ kind, values }, at) =>
    kind !== "bar"
      ? [...values]
      : values.map((_, index) =>
          series
            .slice(at)
            .reduce(
              (sum, other) => (other.kind === "bar" ? sum + (other.values[index] ?? 0) : sum),
              0,
            ),
        ),
  );
  return [[...times], ...stacked];
}

function shade(chart: UPlot, { shades = [] }: ChartData, colorOf: ColorOf): void {
  const { ctx, bbox } = chart;
  for (const { fromS, toS, color } of shades) {
    const left = Math.max(bbox.left, chart.valToPos(fromS, "x", true));
    const right = Math.min(bbox.left + bbox.width, chart.valToPos(toS, "x", true));
    if (right <= left) continue;
    ctx.save();
    ctx.globalAlpha = 0.22;
    ctx.fillStyle = colorOf(color);
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.restore();
  }
}

function mark(chart: UPlot, { marks = [] }: ChartData, colorOf: ColorOf): void {
  const { ctx, bbox } = chart;
  for (const { atS, color } of marks) {
    const left = chart.valToPos(atS, "x", true);
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.save();
    ctx.strokeStyle = colorOf(color);
    ctx.lineWidth = 1.5;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }
}

/** Resolves custom properties to hexadecimal colors, because a canvas cannot use custom properties. */
function colorsOf(target: HTMLElement): ColorOf {
  const found = new Map<string, string>();
  return (property) => {
    const known = found.get(property);
    if (known !== undefined) return known;
    const probe = document.createElement("span");
    probe.style.color = `var(${property})`;
    target.append(probe);
    const parts = getComputedStyle(probe).color.match(/\d+/g) ?? [];
    probe.remove();
    const hex = parts.slice(0, 3).map((part) => Number(part).toString(16).padStart(2, "0"));
    const color = `#${hex.join("")}`;
    found.set(property, color);
    return color;
  };
}
