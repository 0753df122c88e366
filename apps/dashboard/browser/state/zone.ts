import { signal } from "@preact/signals";

/** Times are shown in UTC, as in logs and in the CLI, or in the time zone of the browser. */
type Zone = "utc" | "local";

const STORED = "konverge.zone";

/** The zone of all times on all pages, stored in this browser. */
export const zone = signal<Zone>(read());

function read(): Zone {
  try {
    return window.localStorage.getItem(STORED) === "local" ? "local" : "utc";
  } catch {
    // The browser forbids storage.
    return "utc";
  }
}

export function switchZone(): void {
  zone.value = zone.value === "utc" ? "local" : "utc";
  try {
    window.localStorage.setItem(STORED, zone.value);
  } catch {
    // The choice then lasts until the page is closed.
  }
}

/** Returns the name of the selected zone at an instant, such as `UTC` or `GMT+2`. */
export function zoneName(atMs: number = Date.now()): string {
  if (zone.value === "utc") return "UTC";
  const minutes = -new Date(atMs).getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  if (minutes === 0) return "UTC";
  return `GMT${minutes < 0 ? "-" : "+"}${hours}${rest === 0 ? "" : `:${rest}`}`;
}

/** Returns `2026-11-21T14:03:09.120` in the selected zone. */
export function wallTime(atMs: number): string {
  const offsetMs = zone.value === "utc" ? 0 : new Date(atMs).getTimezoneOffset() * 60_000;
  return new Date(atMs - offsetMs).toISOString().slice(0, -1);
}
