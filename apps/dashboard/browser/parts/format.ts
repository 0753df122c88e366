import { wallTime, zoneName } from "../state/zone.ts";

/** Formats a duration with about two digits: `840 ms`, `1.2 s`, `3 min`, `2 h`. */
export function formatMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** Formats an instant in the selected time zone: `2026-11-21 14:03:09.120 UTC`. */
export function formatInstant(iso: string): string {
  const atMs = Date.parse(iso);
  return `${wallTime(atMs).replace("T", " ")} ${zoneName(atMs)}`;
}

/** Formats a time of day in the selected time zone: `14:03:09 UTC`. */
export function formatClock(atMs: number): string {
  return `${wallTime(atMs).slice(11, 19)} ${zoneName(atMs)}`;
}

export function formatCount(number: number): string {
  return number.toLocaleString("en-US");
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${formatCount(number)} ${number === 1 ? one : many}`;
}

/** Formats a rate in calls per second. */
export function formatRate(rate: number): string {
  return String(rate < 10 ? Number(rate.toPrecision(2)) : Math.round(rate));
}

/** Formats a size: `840 B`, `12 MiB`, `1.2 GiB`. */
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let at = 0;
  while (value >= 1_024 && at < units.length - 1) {
    value /= 1_024;
    at += 1;
  }
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at] ?? ""}`;
}
