import { randomBytes } from "node:crypto";
import type { CodecContext } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { aesGcmCodec } from "./aes-gcm-codec.ts";
import { externalCodec, type ExternalStore } from "./external-codec.ts";

const context: CodecContext = { workflow: "pay", run: "a", kind: "record" };
const text = (value: string) => Buffer.from(value);

describe("aesGcmCodec", () => {
  const keys = { old: randomBytes(32), new: randomBytes(32).toString("base64") };
  const old = aesGcmCodec({ keys, current: "old" });
  const rotated = aesGcmCodec({ keys, current: "new" });

  test("encrypts each time differently, and decrypts", async () => {
    const [one, other] = [
      await old.encode(text("secret"), context),
      await old.encode(text("secret"), context),
    ];
    expect(Buffer.from(one).equals(Buffer.from(other))).toBe(false);
    expect(Buffer.from(one).includes("secret")).toBe(false);
    expect(Buffer.from(await old.decode(one, context)).toString()).toBe("secret");
  });

  test("decrypts with the key that a value names, also after a rotation", async () => {
    const before = await old.encode(text("secret"), context);
    const after = await rotated.encode(text("secret"), context);
    expect(Buffer.from(await rotated.decode(before, context)).toString()).toBe("secret");
    expect(Buffer.from(await old.decode(after, context)).toString()).toBe("secret");
    const alone = aesGcmCodec({ keys: { new: keys.new }, current: "new" });
    expect(() => alone.decode(before, context)).toThrow('key "old" is missing from keys');
  });

  test("rejects a changed value, and one of another workflow or use", async () => {
    const encoded = Buffer.from(await old.encode(text("secret"), context));
    const decode = (bytes: Uint8Array, more: Partial<CodecContext> = {}) =>
      old.decode(bytes, { ...context, ...more });
    expect(Buffer.from(await decode(encoded, { run: "b" })).toString()).toBe("secret");
    expect(() => decode(encoded, { workflow: "other" })).toThrow(
      /was not encoded with this key|missing from keys|too short/,
    );
    expect(() => decode(encoded, { kind: "input" })).toThrow(
      /was not encoded with this key|missing from keys|too short/,
    );
    for (const at of [0, 3, 10, 20, encoded.length - 1]) {
      const changed = Buffer.from(encoded);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => decode(changed)).toThrow(
        /was not encoded with this key|missing from keys|too short/,
      );
    }
    for (const length of [0, 1, 20])
      expect(() => decode(encoded.subarray(0, length))).toThrow(
        /was not encoded with this key|missing from keys|too short/,
      );
  });

  test.each([
    { given: { keys: {}, current: "a" }, detail: 'current: key "a" is not one of keys (none)' },
    {
      given: { keys: { a: "c2hvcnQ=" }, current: "a" },
      detail: "keys.a: must be 32 bytes (got 5)",
    },
  ])("rejects $detail", ({ given, detail }) => {
    expect(() => aesGcmCodec(given)).toThrow(detail);
  });
});

describe("externalCodec", () => {
  const open = () => {
    const objects = new Map<string, Uint8Array>();
    const store: ExternalStore = {
      put: async (name, bytes) => void objects.set(name, bytes),
      get: async (name) => objects.get(name),
    };
    return { objects, store };
  };
  const large = text("large".repeat(5_000));

  test("keeps large values in the store, and small ones in place", async () => {
    const { objects, store } = open();
    const codec = externalCodec({ store });
    const small = await codec.encode(text("small"), context);
    expect(objects.size).toBe(0);
    const reference = await codec.encode(large, context);
    expect(reference.length).toBeLessThan(100);
    expect([...objects.keys()]).toEqual([expect.stringMatching(/^pay\/[0-9a-f]{64}$/)]);
    expect(Buffer.from(await codec.decode(small, context)).toString()).toBe("small");
    expect(Buffer.from(await codec.decode(reference, context)).equals(large)).toBe(true);
  });

  test("stores values of an inner codec", async () => {
    const { objects, store } = open();
    const inner = aesGcmCodec({ keys: { a: randomBytes(32) }, current: "a" });
    const codec = externalCodec({ store, codec: inner, aboveBytes: 10 });
    const reference = await codec.encode(large, context);
    expect(Buffer.from([...objects.values()][0] ?? []).includes("large")).toBe(false);
    expect(Buffer.from(await codec.decode(reference, context)).equals(large)).toBe(true);
  });

  test("rejects a missing and a changed object", async () => {
    const { objects, store } = open();
    const codec = externalCodec({ store });
    const reference = await codec.encode(large, context);
    const [name = ""] = objects.keys();
    objects.set(name, text("changed"));
    await expect(codec.decode(reference, context)).rejects.toThrow("has been changed");
    objects.clear();
    await expect(codec.decode(reference, context)).rejects.toThrow("is missing");
  });
});
