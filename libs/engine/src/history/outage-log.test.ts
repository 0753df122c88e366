import { expect, test } from "vitest";
import { OutageLog } from "./outage-log.ts";

test("keeps the latest outages, the last one until now", () => {
  const log = new OutageLog();
  log.note(true, 1);
  expect(log.spans(2)).toEqual([]);
  log.note(false, 10);
  log.note(false, 15);
  expect(log.spans(20)).toEqual([{ fromMs: 10, toMs: 20 }]);
  log.note(true, 30);
  log.note(true, 40);
  expect(log.spans(50)).toEqual([{ fromMs: 10, toMs: 30 }]);
  for (let at = 100; at < 1_000; at += 2) {
    log.note(false, at);
    log.note(true, at + 1);
  }
  expect(log.spans(2_000)).toHaveLength(100);
  expect(log.spans(2_000).at(-1)).toEqual({ fromMs: 998, toMs: 999 });
});
