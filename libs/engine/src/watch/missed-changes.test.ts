import { expect, test } from "vitest";
import { MissedChanges } from "./missed-changes.ts";

/** Two sources, whose first lists had the versions 10 and 20. */
function begun() {
  const missed = new MissedChanges();
  const ran: string[] = [];
  missed.begin(["10", "20"]);
  const add = (source: number, version: string) =>
    missed.add(source, version, () => void ran.push(`${source}@${version}`));
  const after = (...reached: string[]) => {
    for (const request of missed.after(reached) ?? ["unknown"]) {
      if (typeof request === "string") ran.push(request);
      else request();
    }
    return ran.splice(0);
  };
  return { missed, add, after };
}

test("returns the changes of each source after the version that the last leader reached", () => {
  const { add, after } = begun();
  add(0, "11");
  add(1, "21");
  add(0, "100");
  expect(after("11", "20")).toEqual(["1@21", "0@100"]);
  expect(after("100", "21")).toEqual([]);
});

test("does not know the changes before its first lists, or those that it has dropped", () => {
  const { add, after } = begun();
  expect(after("9", "20")).toEqual(["unknown"]);
  expect(after("10", "20")).toEqual([]);
  for (let version = 11; version <= 2_011; version += 1) add(0, String(version));
  expect(after("10", "20")).toEqual(["unknown"]);
  expect(after("11", "20")).toHaveLength(2_000);
});

test("does not know changes whose versions cannot be compared, or of other sources", () => {
  const { after, missed, add } = begun();
  expect(after("x", "20")).toEqual(["unknown"]);
  expect(after("10")).toEqual(["unknown"]);
  add(0, "not-a-version");
  expect(after("10", "20")).toEqual(["0@not-a-version"]);
  missed.end();
  expect(after("10", "20")).toEqual(["unknown"]);
});
