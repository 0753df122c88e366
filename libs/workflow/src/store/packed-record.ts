import { deflateRawSync, inflateRawSync } from "node:zlib";
import { isEncoded } from "@konverge/core";
import type { StepRecord } from "./run-record.ts";

/** Values of more bytes are compressed. Smaller ones gain less than the call costs. */
export const PACK_ABOVE_BYTES: number = 8 * 1_024;

/** A stored record whose value is compressed: raw DEFLATE of its JSON, in base64. Other records have their value as it is. */
interface PackedRecord extends Omit<StepRecord, "value"> {
  readonly packed: string;
}

/** Returns the JSON text of a record, with a large value compressed. */
export function packRecord(record: StepRecord): string {
  const text = JSON.stringify(record);
  // A codec gets its values compressed.
  if (text.length <= PACK_ABOVE_BYTES || isEncoded(record.value)) return text;
  const { value, ...rest } = record;
  const json = JSON.stringify(value) ?? "";
  if (json.length <= PACK_ABOVE_BYTES) return text;
  const packed = deflateRawSync(json).toString("base64");
  return packed.length < json.length
    ? JSON.stringify({ ...rest, packed } satisfies PackedRecord)
    : text;
}

/** Returns a parsed record with its value, and the bytes that the compression has saved. */
export function unpackRecord(stored: StepRecord | PackedRecord): {
  readonly record: StepRecord;
  readonly savedBytes: number;
} {
  if (!("packed" in stored)) return { record: stored, savedBytes: 0 };
  const { packed, ...rest } = stored;
  const json = inflateRawSync(Buffer.from(packed, "base64"));
  return {
    record: { ...rest, value: JSON.parse(json.toString()) as unknown },
    savedBytes: json.length - packed.length,
  };
}
