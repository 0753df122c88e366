import { CelError, Duration, Timestamp } from "../values/value.ts";
import { member, type Overload } from "./declaration.ts";

const DAY_MS = 86_400_000;

/** Shifts a time to a zone, so that its UTC fields are the local ones. @throws CelError for an unknown zone */
function inZone({ nanos }: Timestamp, zone: string): Date {
  const floor = nanos % 1_000_000n < 0n ? nanos / 1_000_000n - 1n : nanos / 1_000_000n;
  const date = new Date(Number(floor));
  const offset = /^([+-]?)(\d\d?):(\d\d)$/.exec(zone);
  if (offset !== null) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3]);
    return new Date(date.getTime() + (offset[1] === "-" ? -minutes : minutes) * 60_000);
  }
  if (zone === "" || zone === "UTC") return date;
  try {
    const name = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" })
      .formatToParts(date)
      .find(({ type }) => type === "timeZoneName")?.value;
    const local = /GMT([+-])(\d\d):(\d\d)/.exec(name ?? "");
    if (local === null) return date;
    const minutes = Number(local[2]) * 60 + Number(local[3]);
    return new Date(date.getTime() + (local[1] === "-" ? -minutes : minutes) * 60_000);
  } catch {
    throw new CelError(`unknown time zone ${zone}`);
  }
}

function dayOfYear(date: Date): number {
  const start = Date.UTC(2000, 0, 1);
  const first = new Date(start);
  first.setUTCFullYear(date.getUTCFullYear());
  return Math.floor((date.getTime() - first.getTime()) / DAY_MS);
}

const FIELDS: Readonly<Record<string, (date: Date) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDayOfYear: dayOfYear,
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDate: (date) => date.getUTCDate(),
  getDayOfWeek: (date) => date.getUTCDay(),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
};
const PARTS: Readonly<Record<string, bigint>> = {
  getHours: 3_600_000_000_000n,
  getMinutes: 60_000_000_000n,
  getSeconds: 1_000_000_000n,
};

export const TIMES: readonly Overload[] = [
  ...Object.entries(FIELDS).flatMap(([name, read]) => [
    member(name, "timestamp -> int", (time: Timestamp) => BigInt(read(inZone(time, "UTC")))),
    member(name, "timestamp, string -> int", (time: Timestamp, zone: string) =>
      BigInt(read(inZone(time, zone))),
    ),
  ]),
  ...Object.entries(PARTS).map(([name, unit]) =>
    member(name, "duration -> int", ({ nanos }: Duration) => nanos / unit),
  ),
  member(
    "getMilliseconds",
    "duration -> int",
    ({ nanos }: Duration) => (nanos / 1_000_000n) % 1000n,
  ),
];
