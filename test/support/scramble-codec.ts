import { randomInt } from "node:crypto";
import type { PayloadCodec } from "@konverge/core";

/** A codec whose output hides the value and differs each time. */
export function scrambleCodec(name = "scramble"): PayloadCodec {
  return {
    name,
    encode(bytes) {
      // Zero would leave the value as it is.
      const key = randomInt(1, 256);
      return Buffer.concat([Buffer.of(key, 0xff), mix(bytes, key)]);
    },
    decode: (bytes) => mix(bytes.subarray(2), bytes[0] ?? 0),
  };
}

function mix(bytes: Uint8Array, key: number): Buffer {
  return Buffer.from(bytes.map((byte) => byte ^ key));
}
