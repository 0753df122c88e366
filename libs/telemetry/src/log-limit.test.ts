import * as fc from "fast-check";
import { expect, test } from "vitest";
import { LogLimit } from "./log-limit.ts";

const second = fc.array(fc.constantFrom("reconcile done", "queue error", "worker ready"), {
  maxLength: 60,
});

test("every line is written or counted, each second has a bound, and no message of a second is hidden", () => {
  fc.assert(
    fc.property(fc.array(second), fc.integer({ min: 1, max: 20 }), (seconds, linesPerSecond) => {
      let nowMs = 0;
      let counted = 0;
      const report = (omitted: ReadonlyMap<string, number>) => {
        for (const count of omitted.values()) counted += count;
      };
      const limit = new LogLimit({ linesPerSecond, report, now: () => nowMs });
      let written = 0;
      for (const messages of seconds) {
        const admitted = messages.filter((message) => limit.admits(message));
        expect(new Set(admitted)).toEqual(new Set(messages));
        expect(admitted.length).toBeLessThanOrEqual(linesPerSecond + new Set(messages).size);
        written += admitted.length;
        nowMs += 1_000;
      }
      limit.flush();
      expect(written + counted).toBe(seconds.flat().length);
    }),
  );
});
