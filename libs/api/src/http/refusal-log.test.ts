import { expect, test } from "vitest";
import { RefusalLog, type CountedRefusal } from "./refusal-log.ts";

test("reports the first refusal of a kind at once and all with a count", () => {
  const reported: CountedRefusal[] = [];
  const log = new RefusalLog((refusal) => reported.push(refusal));
  for (let n = 0; n < 500; n++) log.note({ code: "unauthorized", source: "10.0.0.1" });
  log.note({ code: "forbidden", source: "10.0.0.1", by: "ci" });
  expect(reported).toEqual([
    { code: "unauthorized", source: "10.0.0.1", count: 1 },
    { code: "forbidden", source: "10.0.0.1", by: "ci", count: 1 },
  ]);
  log.flush();
  expect(reported.slice(2)).toEqual([{ code: "unauthorized", source: "10.0.0.1", count: 500 }]);
});

test("keeps a limited number of sources", () => {
  const reported: CountedRefusal[] = [];
  const log = new RefusalLog((refusal) => reported.push(refusal));
  for (let n = 0; n < 5_000; n++) log.note({ code: "unauthorized", source: `10.0.0.${n}` });
  expect(reported).toHaveLength(1_001);
  log.flush();
  expect(reported.at(-1)).toEqual({ code: "unauthorized", source: "others", count: 4_000 });
});
