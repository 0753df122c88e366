import { sleepMs } from "@konverge/core";
import { poll, stream, type StreamEvent } from "@konverge/engine";
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { useSources } from "./sources-harness.ts";

const named = (name: string) => ({ namespace: "n", name });

describe("poll", () => {
  const harness = useSources(useQueues());

  test("requests new, changed and missing items, and none that is unchanged, also under a new leader", async () => {
    let items: Record<string, string> = { a: "1", b: "1" };
    let calls = 0;
    const source = poll({
      every: 100,
      list: () => {
        calls += 1;
        return Object.entries(items).map(([name, etag]) => ({ name, etag }));
      },
      key: ({ name }) => named(name),
      version: ({ etag }) => etag,
    });
    const twice = async () => {
      const before = calls;
      await until("it polled twice", () => calls >= before + 2);
    };
    const first = harness.lead([source]);
    await until(
      "all are requested",
      async () => Object.keys(await harness.requests()).length === 2,
    );
    await twice();
    expect(await harness.requests()).toEqual({ a: 1, b: 1 });
    items = { a: "2", c: "1" };
    await until("the change is requested", async () => (await harness.requests())["c"] === 1);
    await twice();
    expect(await harness.requests()).toEqual({ a: 2, b: 2, c: 1 });
    await first.stop();
    items = { a: "2", c: "2" };
    harness.lead([source]);
    await until(
      "the missed change is requested",
      async () => (await harness.requests())["c"] === 2,
    );
    await twice();
    expect(await harness.requests()).toEqual({ a: 2, b: 2, c: 2 });
  });

  test("passes the cursor of requested changes to the next call, and to the next leader", async () => {
    const cursors: (string | undefined)[] = [];
    const source = poll({
      every: 100,
      list: ({ cursor }) => {
        cursors.push(cursor);
        const at = Number(cursor ?? 0);
        return {
          items: at < 3 ? [`e${at}`] : [],
          cursor: String(Math.min(at + 1, 3)),
          more: at < 2,
        };
      },
      key: named,
    });
    const first = harness.lead([source]);
    await until("it has read all", () => cursors.includes("3"));
    await first.stop();
    expect(cursors.slice(0, 4)).toEqual([undefined, "1", "2", "3"]);
    expect(await harness.requests()).toEqual({ e0: 1, e1: 1, e2: 1 });
    cursors.length = 0;
    harness.lead([source]);
    await until("the next leader polls", () => cursors.length > 0);
    expect(cursors[0]).toBe("3");
  });

  test("a cursor that does not move is not polled without a pause", async () => {
    let calls = 0;
    harness.lead([
      poll({
        every: "1h",
        list: () => {
          calls += 1;
          return { items: ["a"], cursor: "1", more: true };
        },
        key: named,
      }),
    ]);
    await until("the cursor is stored", () => calls === 2);
    await until("it is requested", async () => ((await harness.requests())["a"] ?? 0) >= 1);
    await sleepMs(50);
    expect(calls).toBe(2);
  });

  test("a list that throws or hangs is retried, and reported until it succeeds", async () => {
    let calls = 0;
    const { lines, stop } = harness.lead([
      poll({
        name: "flaky",
        every: 100,
        timeout: 50,
        list: async ({ signal }) => {
          calls += 1;
          if (calls === 1) throw new Error("no route");
          if (calls === 2)
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return ["a"];
        },
        key: named,
      }),
    ]);
    const report = async () => (await harness.store.reports())[0];
    await until("the failure is stored", async () => (await report())?.error === "no route");
    await until("the timeout is stored", async () => (await report())?.failures === 2);
    expect((await report())?.error).toBe("list took more than 50 ms");
    await until("it has recovered", async () => (await report())?.failures === 0);
    await stop();
    expect(await harness.requests()).toEqual({ a: 1 });
    const texts = lines.map(({ message }) => message);
    expect(texts).toContain("source failed, retrying");
    expect(texts).toContain("source recovered");
  });

  test("an item with an invalid name is reported, and does not affect the others", async () => {
    harness.lead([poll({ every: 100, list: () => ["a", ""], key: named })]);
    await until("it is reported", async () => {
      const [report] = await harness.store.reports();
      return report?.error?.includes("name must not be empty");
    });
    expect(await harness.requests()).toEqual({ a: 1 });
  });

  test("items of one object that swap their versions request it", async () => {
    let items = [
      { id: "x", version: "1" },
      { id: "y", version: "2" },
    ];
    harness.lead([
      poll({
        every: 100,
        list: () => items,
        key: () => named("a"),
        version: ({ version }) => version,
      }),
    ]);
    await until("it is requested", async () => (await harness.requests())["a"] === 1);
    items = [
      { id: "y", version: "1" },
      { id: "x", version: "2" },
    ];
    await until("it is requested again", async () => (await harness.requests())["a"] === 2);
    expect(Object.keys(await harness.requests())).toEqual(["a"]);
  });
});

describe("stream", () => {
  const harness = useSources(useQueues());

  /** Events 0 to `end`, each with its number as the cursor. */
  const numbered = (end: () => number) =>
    async function* numbers(cursor: string | undefined, signal: AbortSignal) {
      for (let at = Number(cursor ?? -1) + 1; ; at += 1) {
        while (at >= end()) await sleepMs(10, signal);
        yield { key: named(`e${at}`), cursor: String(at) } satisfies StreamEvent;
      }
    };

  test("resumes after the acknowledged event", async () => {
    let end = 1_500;
    const opened: (string | undefined)[] = [];
    const events = numbered(() => end);
    const source = stream("numbers", (cursor, signal) => {
      opened.push(cursor);
      return events(cursor, signal);
    });
    const place = { controller: "sourced", source: "numbers" };
    const first = harness.lead([source]);
    await until("all are acknowledged", async () => {
      const [report] = await harness.store.reports();
      return report !== undefined && (await harness.requests())["e1499"] === 1;
    });
    await first.stop();
    end = 1_510;
    harness.lead([source]);
    await until("the next are requested", async () => (await harness.requests())["e1509"] === 1);
    const requests = await harness.requests();
    expect(Object.keys(requests)).toHaveLength(1_510);
    expect(opened[0]).toBeUndefined();
    expect(Number(opened[1])).toBeGreaterThanOrEqual(0);
    expect((await harness.store.claim(place)).cursor).toBeDefined();
  });

  test("a stream that ends at once is opened again with a backoff, and reported", async () => {
    let opened = 0;
    harness.lead([
      stream("empty", () => {
        opened += 1;
        return ReadableStream.from<StreamEvent>([]);
      }),
    ]);
    await until("it is reported", async () => {
      const [report] = await harness.store.reports();
      return report !== undefined && report.failures >= 2;
    });
    expect(opened).toBeLessThanOrEqual(4);
    const [report] = await harness.store.reports();
    expect(report?.error).toBe("the stream ended without an event");
  });

  test("a leader that was replaced cannot move the cursor", async () => {
    const place = { controller: "sourced", source: "s" };
    const old = await harness.store.claim(place);
    const next = await harness.store.claim(place);
    expect(await harness.store.advance(place, next, { cursor: "5" })).toBe(true);
    expect(await harness.store.advance(place, old, { cursor: "9", versions: [["a", "1"]] })).toBe(
      false,
    );
    expect((await harness.store.claim(place)).cursor).toBe("5");
    expect(await harness.store.versions(place)).toEqual(new Map());
  });
});
