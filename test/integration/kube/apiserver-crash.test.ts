import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { useChildren, type Child } from "../../support/child.ts";
import { until } from "../../support/until.ts";

const CHILD = fileURLToPath(new URL("apiserver-child.ts", import.meta.url));
const MAPS = "/api/v1/namespaces/default/configmaps";
const WRITERS = 8;
const ROUNDS = 3;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "konverge-crash-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const startChild = useChildren();

async function start(): Promise<{ readonly url: string; readonly child: Child }> {
  const child = startChild([CHILD, folder]);
  const url = await until("the server is ready", () => child.output[0]);
  return { url, child };
}

/** Increments a counter until the server is gone; returns the last acknowledged count. */
async function countUp(
  url: string,
  name: string,
  from: number,
  onAcknowledged: () => void,
): Promise<number> {
  for (let count = from + 1; ; count++) {
    try {
      const response = await fetch(`${url}${MAPS}/${name}`, {
        method: "PATCH",
        headers: { "Content-Type": "application/merge-patch+json" },
        body: JSON.stringify({ data: { count: String(count) } }),
      });
      expect(response.status).toBe(200);
      await response.arrayBuffer();
    } catch (error) {
      // A failed expectation is not a lost connection.
      if (error instanceof Error && error.name === "AssertionError") throw error;
      return count - 1;
    }
    onAcknowledged();
  }
}

test("kill -9 during writes loses no acknowledged write", async () => {
  const names = Array.from({ length: WRITERS }, (_, index) => `counter-${index}`);
  let counts = names.map(() => 0);
  let version = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { url, child } = await start();
    if (round === 0) {
      for (const name of names) {
        const made = await fetch(url + MAPS, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ metadata: { name }, data: { count: "0" } }),
        });
        expect(made.status).toBe(201);
      }
    }
    let acknowledged = 0;
    const enough = Promise.withResolvers<void>();
    const writing = names.map((name, index) =>
      countUp(url, name, counts[index] ?? 0, () => {
        if (++acknowledged === 200) enough.resolve();
      }),
    );
    await enough.promise;
    await child.kill();
    const reached = await Promise.all(writing);

    const again = await start();
    const list = (await (await fetch(again.url + MAPS)).json()) as {
      readonly metadata: { readonly resourceVersion: string };
      readonly items: readonly {
        readonly metadata: { readonly name: string };
        readonly data: { readonly count: string };
      }[];
    };
    const found = names.map((name) =>
      Number(list.items.find(({ metadata }) => metadata.name === name)?.data.count),
    );
    for (const [index, count] of found.entries()) {
      // The write in flight may have been stored without its response.
      expect([reached[index], (reached[index] ?? 0) + 1]).toContain(count);
    }
    expect(Number(list.metadata.resourceVersion)).toBeGreaterThan(version);
    version = Number(list.metadata.resourceVersion);
    counts = found;
    await again.child.kill();
  }
});
