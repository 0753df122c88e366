import { expect, test } from "vitest";
import { linkAbort } from "./link-abort.ts";

test("aborts with the reason of the first signal that aborts, before or after", () => {
  const [early, first, second] = [
    new AbortController(),
    new AbortController(),
    new AbortController(),
  ];
  early.abort("early");
  const late = new AbortController();
  linkAbort(late, early.signal);
  expect(late.signal.reason).toBe("early");

  const both = new AbortController();
  linkAbort(both, first.signal);
  linkAbort(both, second.signal);
  expect(both.signal.aborted).toBe(false);
  second.abort("second");
  first.abort("first");
  expect(both.signal.reason).toBe("second");
});

test("does not abort after the link was ended", () => {
  const [source, linked] = [new AbortController(), new AbortController()];
  linkAbort(linked, source.signal)();
  source.abort();
  expect(linked.signal.aborted).toBe(false);
});
