/** A series of a chart. */
export interface Series {
  readonly label: string;
  /** A CSS custom property. */
  readonly color: `--${string}`;
  /** By minute; null without data. */
  readonly values: readonly (number | null)[];
  /** Bars are stacked. Default: a line. */
  readonly kind?: "bar" | "area" | "line";
  /** Default: the left axis. */
  readonly scale?: "right";
  readonly isDashed?: boolean;
}

/** A shaded period, for example an outage. */
export interface Shade {
  readonly fromS: number;
  readonly toS: number;
  readonly color: `--${string}`;
}

/** A vertical line, for example a deployment. */
export interface Mark {
  readonly atS: number;
  readonly color: `--${string}`;
}

export interface ChartData {
  /** Unix seconds, by minute. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly shades?: readonly Shade[];
  readonly marks?: readonly Mark[];
  readonly format: (value: number) => string;
  /** Format of the right axis, if a series uses it. */
  readonly formatRight?: (value: number) => string;
  /** In px. */
  readonly height: number;
}
