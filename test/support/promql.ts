import { execFile } from "node:child_process";
import type { AlertGroup } from "../../apps/cli/src/manifests/alert-rules.ts";
import { findPromql } from "../../infra/prometheus/find-promql.js";

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly (readonly [secondsAgo: number, value: number])[];
}

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Answer {
  readonly samples: readonly Sample[] | null;
  readonly error?: string;
}

/** An alert that fires: its name and labels. */
interface Firing {
  readonly alert: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The values of a scrape by series, as in the text format. */
export type Scrape = ReadonlyMap<string, number>;

export function parseScrape(text: string): Scrape {
  return new Map(
    [...text.matchAll(/^([a-z_]\w*(?:\{.*\})?) (\S+)$/gm)].map(([, name = "", value]) => [
      name,
      value === "+Inf" ? Number.MAX_VALUE : Number(value),
    ]),
  );
}

/**
 * Returns the series of the last scrape with their earlier values, oldest first. `instance` distinguishes processes. A series that
 * is missing in the last scrape is stale, as after a scrape without it.
 */
export function seriesOf(scrapes: readonly Scrape[], stepSeconds = 60, instance = "a"): Series[] {
  const last = scrapes.at(-1) ?? new Map<string, number>();
  return [...last.keys()].map((series) => {
    const points = scrapes.flatMap((scrape, at) => {
      const value = scrape.get(series);
      return value === undefined ? [] : [[(scrapes.length - 1 - at) * stepSeconds, value] as const];
    });
    return { labels: { instance, ...labelsOf(series) }, points };
  });
}

/** Returns the name and the labels of a series of the text format. */
export function labelsOf(series: string): Record<string, string> {
  const [, name = "", labels = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? [];
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
  return { __name__: name, ...Object.fromEntries(pairs.map(([, key, text]) => [key, text])) };
}

/** Prometheus' own engine. */
export interface Promql {
  evaluate(series: readonly Series[], expressions: readonly string[]): Promise<Sample[][]>;
  /** Returns the alerts whose expressions hold now, whatever their `for`. */
  pending(series: readonly Series[], groups: readonly AlertGroup[]): Promise<Firing[]>;
}

/** A process has hundreds of series, and the engine reads all of them for each expression. */
function usedBy(expressions: readonly string[], series: readonly Series[]): Series[] {
  const words = new Set(expressions.flatMap((expression) => expression.match(/\w+/g) ?? []));
  return series.filter(({ labels }) => words.has(labels["__name__"] ?? ""));
}

/** Returns the reason if the engine is missing. */
export async function openPromql(): Promise<Promql | { readonly missing: string }> {
  const found = await findPromql({ log: (line) => console.error(line) });
  if ("missing" in found) return found;
  const evaluate: Promql["evaluate"] = async (series, expressions) => {
    const output = await new Promise<string>((resolve, reject) => {
      const child = execFile(found.path, [], { maxBuffer: 2 ** 24 }, (error, stdout) => {
        if (error === null) resolve(stdout);
        else reject(error);
      });
      child.stdin?.end(JSON.stringify({ series: usedBy(expressions, series), expressions }));
    });
    return (JSON.parse(output) as Answer[]).map(({ samples, error }, index) => {
      if (error !== undefined) throw new Error(`${expressions[index]}: ${error}`);
      return [...(samples ?? [])];
    });
  };
  return {
    evaluate,
    async pending(series, groups) {
      const rules = groups.flatMap((group) => group.rules);
      const answers = await evaluate(
        series,
        rules.map(({ expr }) => expr),
      );
      return rules.flatMap(({ alert }, at) =>
        (answers[at] ?? []).map(({ labels }) => ({ alert, labels })),
      );
    },
  };
}
