import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { createInboundSecrets } from "./inbound-secrets.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("the secret of a deleted file is valid for at most 10 s", async () => {
  const folder = await mkdtemp(join(tmpdir(), "konverge-secrets-"));
  try {
    const secret = "0123456789abcdef";
    await writeFile(join(folder, "github"), `${secret}\n`);
    vi.useFakeTimers({ toFake: ["performance"] });
    const secrets = createInboundSecrets({ folder });
    expect(secrets.of("github")).toEqual([secret]);
    await rm(join(folder, "github"));
    for (let seconds = 1; seconds < 10; seconds += 1) {
      vi.advanceTimersByTime(1_000);
      expect(secrets.of("github")).toEqual([secret]);
    }
    vi.advanceTimersByTime(1_001);
    expect(() => secrets.of("github")).toThrow("is not set");
    await writeFile(join(folder, "github"), `${secret}\n`);
    vi.advanceTimersByTime(1_001);
    expect(secrets.of("github")).toEqual([secret]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
