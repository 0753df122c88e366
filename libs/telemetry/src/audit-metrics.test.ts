import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createAuditMetrics } from "./audit-metrics.ts";

test("a scrape reads each stream once, and the next one again", async () => {
  const registry = new Registry();
  let reads = 0;
  createAuditMetrics(registry)("http", async () => ({ lagMs: 2_000, lost: (reads += 1) }));
  for (const scrape of [1, 2]) {
    const text = await registry.metrics();
    expect(reads).toBe(scrape);
    expect(text).toContain('konverge_audit_stream_lag_seconds{sink="http"} 2\n');
    expect(text).toContain(`konverge_audit_entries_lost_total{sink="http"} ${scrape}\n`);
  }
});
